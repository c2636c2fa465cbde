# Answers a query over the data of a step. QUERY is JSON: see job in query.go.
import json
import sys

Q = json.loads(QUERY)


def documents():
    with open(input_file, encoding="utf-8") as f:
        text = f.read()
    try:
        return json.loads(text)
    except ValueError:  # a document a line
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def records(value):
    """The list of objects at the declared path or, without one, nearest to the top."""
    for name in Q["path"] or []:
        if isinstance(value, dict) and name in value:
            value = value[name]
    level = [] if Q["single"] and isinstance(value, dict) else [value]
    while level:
        for v in level:
            if isinstance(v, list) and (v == [] or any(isinstance(r, dict) for r in v)):
                return [r for r in v if isinstance(r, dict)]
        level = [m for v in level if isinstance(v, dict) for m in v.values()]
    return [value] if isinstance(value, dict) else []


def get(row, column):
    if "path" in column:
        for name in column["path"]:
            row = row.get(name) if isinstance(row, dict) else None
        return row
    level = [row]
    while level:
        for v in level:
            if column["name"] in v:
                return v[column["name"]]
        level = [m for v in level for m in v.values() if isinstance(m, dict)]
    return None


def number(value):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def text(value):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).casefold()


def holds(row, c):
    value, op, want = get(row, c["columns"][0]), c["op"], c["value"]
    if op == "is not":
        return value is None or text(value) != text(want)
    if value is None:
        return False
    if op in ("is", "known"):
        return op == "known" or text(value) == text(want)
    value = number(value)
    if value is None:
        return False
    return {"over": value > want, "under": value < want, "at least": value >= want, "at most": value <= want}[op]


def mentioning(rows, c):
    def words(value):
        return " " + " ".join("".join(x if x.isalnum() else " " for x in text(value)).split()) + " "

    def kept(same):
        return [r for r in rows if any(same(words(v)) for v in (get(r, k) for k in c["columns"]) if v is not None)]

    want = words(c["value"])
    return kept(lambda have: have == want) or kept(lambda have: want in have)


def fold(rows):
    if Q["fold"] == "count":
        return len(rows)
    values = [v for v in (number(get(r, Q["of"])) for r in rows) if v is not None]
    if Q["fold"] == "total":
        return sum(values)
    return sum(values) / len(values) if values else None


def groups(rows):
    """Pairs of a row that stands for its group, and the folded value."""
    found = {}
    for r in rows:
        found.setdefault(json.dumps([get(r, c) for c in Q["per"] or []]), []).append(r)
    if not Q["per"]:
        found = {"": rows}
    return [(g[0] if g else {}, fold(g)) for g in found.values()]


def key(pair):
    value = get(pair[0], Q["by"])
    n = number(value)
    return (n is None, n or 0, text(value))


def main():
    data = documents()
    if Q["form"] == "any":
        return data
    rows = records(data)
    for c in Q["where"] or []:
        rows = mentioning(rows, c) if c["op"] == "mentions" else [r for r in rows if holds(r, c)]
    if Q["fold"]:
        pairs = groups(rows)
    else:
        pairs = [(r, None) for r in rows]
        if Q.get("by"):
            pairs = [p for p in pairs if get(p[0], Q["by"]) is not None]
            pairs.sort(key=key, reverse=not Q["asc"])
        pairs = pairs[: Q["limit"] or None]
    table = []
    for at, (row, folded) in enumerate(pairs, 1):
        line = []
        for out in Q["returns"]:
            value = get(row, out["from"]) if "from" in out else folded
            if value is None and out["position"]:
                value = at
            line.append(int(value) if isinstance(value, float) and value.is_integer() else value)
        table.append(line)
    for i, out in enumerate(Q["returns"]):
        if table and out["required"] and "path" not in out.get("from", {"path": 0}) and all(line[i] is None for line in table):
            sys.exit("the data has no field for " + out["name"])
    names = [out["name"] for out in Q["returns"]]
    if Q["form"] in ("rows", "row"):
        table = [dict(zip(names, line)) for line in table]
    else:
        table = [line[0] for line in table]
    if Q["form"] in ("row", "value"):
        if len(table) != 1:
            sys.exit("one value is asked for, and there are " + str(len(table)))
        return table[0]
    return {Q["member"]: table} if Q["member"] else table


print(json.dumps(main(), ensure_ascii=False))
