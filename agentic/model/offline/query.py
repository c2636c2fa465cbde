# Answers a query over the data of a step. QUERY is JSON: see job in script.go.
import json
import sys

Q = json.loads(QUERY)


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
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def words(value):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " " + " ".join("".join(x if x.isalnum() else " " for x in str(value).casefold()).split()) + " "


def where(rows, c):
    op, want = c["op"], c["value"]

    def kept(fits):
        return [r for r in rows if any(fits(v) for v in (get(r, k) for k in c["columns"]) if v is not None)]

    if op == "is":
        return kept(lambda v: words(v) == words(want))
    if op == "is not":
        left = kept(lambda v: words(v) == words(want))
        return [r for r in rows if r not in left]
    if op == "mentions":
        return kept(lambda v: words(v) == words(want)) or kept(lambda v: words(want) in words(v))
    fits = {"over": lambda n: n > want, "under": lambda n: n < want, "at least": lambda n: n >= want, "at most": lambda n: n <= want}[op]
    return kept(lambda v: number(v) is not None and fits(number(v)))


def key(row):
    value = get(row, Q["by"])
    n = number(value)
    return (n is None, n or 0, words(value))


def line(row, count=None):
    values = [get(row, o["from"]) if o["from"] else count for o in Q["returns"]]
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]


def main():
    with open(input_file, encoding="utf-8") as f:
        data = json.load(f)
    if Q["form"] == "any":
        return data
    rows = records(data)
    for c in Q["where"] or []:
        rows = where(rows, c)
    if Q["by"]:
        rows = sorted((r for r in rows if get(r, Q["by"]) is not None), key=key, reverse=not Q["asc"])
    rows = rows[: Q["limit"] or None]
    table = [line({}, len(rows))] if Q["count"] else [line(r) for r in rows]
    for i, o in enumerate(Q["returns"]):
        if table and o["required"] and all(row[i] is None for row in table):
            sys.exit("the data has no field for " + o["name"])
    table = [dict(zip([o["name"] for o in Q["returns"]], row)) for row in table]
    if Q["form"] == "row":
        if len(table) != 1:
            sys.exit("one record is asked for, and there are " + str(len(table)))
        return table[0]
    return {Q["member"]: table} if Q["member"] else table


print(json.dumps(main(), ensure_ascii=False))
