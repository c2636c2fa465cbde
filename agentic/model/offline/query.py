# Answers a query over the data of a step. QUERY is JSON: see query in read.go.
import json

Q = json.loads(QUERY)


def get(row, path):
    for name in path:
        row = row.get(name) if isinstance(row, dict) else None
    return row


def words(value):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " " + " ".join("".join(x if x.isalnum() else " " for x in str(value).casefold()).split()) + " "


def matches(value, op, want):
    if op in ("is", "is not"):
        return (words(value) == words(want)) == (op == "is")
    if op == "mentions":
        return words(want) in words(value)
    return {"over": value > want, "under": value < want, "at least": value >= want, "at most": value <= want}[op]


def main():
    with open(input_file, encoding="utf-8") as f:
        rows = get(json.load(f), Q["path"] or [])
    for c in Q["where"] or []:
        values = [[get(row, k["path"]) for k in c["columns"]] for row in rows]
        rows = [row for row, of in zip(rows, values) if any(v is not None and matches(v, c["op"], c["value"]) for v in of)]
    if Q["by"]:
        path = Q["by"]["path"]
        rows = [row for row in rows if get(row, path) is not None]
        rows.sort(key=lambda row: get(row, path), reverse=not Q["asc"])
    if Q["count"]:
        return {"count": len(rows)}
    return [{c["name"]: get(row, c["path"]) for c in Q["columns"]} for row in rows[: Q["limit"] or None]]


print(json.dumps(main(), ensure_ascii=False))
