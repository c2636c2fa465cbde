// Strict I-JSON as docs/spec/envelope.md says it, written apart from the Go code.

export const MAX_SIZE = 49152;
const MAX_DEPTH = 32;

export class Refused extends Error {
  constructor(code, why) {
    super(why);
    this.code = code;
  }
}

const invalid = (why) => new Refused("SCHEMA_INVALID", why);

// parse reads one JSON text of bytes. Objects have no prototype.
export function parse(bytes) {
  if (bytes.length > MAX_SIZE) throw new Refused("PAYLOAD_TOO_LARGE", "received size");
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw invalid("not UTF-8");
  }
  const reader = new Reader(text);
  reader.space();
  const value = reader.value(1);
  reader.space();
  if (reader.at !== text.length) throw invalid("something follows");
  return value;
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  space() {
    while (this.at < this.text.length && " \t\n\r".includes(this.text[this.at])) this.at++;
  }

  take(token) {
    if (!this.text.startsWith(token, this.at)) return false;
    this.at += token.length;
    return true;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  value(depth) {
    const c = this.text[this.at];
    if (c === "{" || c === "[") {
      if (depth > MAX_DEPTH) throw new Refused("PAYLOAD_TOO_LARGE", "depth");
      this.at++;
      return c === "{" ? this.object(depth) : this.array(depth);
    }
    if (c === '"') return this.string();
    if (this.take("true")) return true;
    if (this.take("false")) return false;
    if (this.take("null")) return null;
    return this.number();
  }

  object(depth) {
    const members = Object.create(null);
    this.space();
    if (this.take("}")) return members;
    for (;;) {
      this.space();
      if (this.text[this.at] !== '"') throw invalid("no name");
      const name = this.string();
      if (Object.hasOwn(members, name)) throw invalid("a name stands twice");
      this.space();
      if (!this.take(":")) throw invalid("no colon");
      this.space();
      members[name] = this.value(depth + 1);
      this.space();
      if (this.take("}")) return members;
      if (!this.take(",")) throw invalid("no comma");
    }
  }

  array(depth) {
    const elements = [];
    this.space();
    if (this.take("]")) return elements;
    for (;;) {
      this.space();
      elements.push(this.value(depth + 1));
      this.space();
      if (this.take("]")) return elements;
      if (!this.take(",")) throw invalid("no comma");
    }
  }

  string() {
    const literal = this.match(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    if (literal === null) throw invalid("not a string");
    const s = JSON.parse(literal);
    if (!s.isWellFormed()) throw invalid("a surrogate stands alone");
    return s;
  }

  // number compares by value: what RFC 8785 would change is refused.
  number() {
    const literal = this.match(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
    if (literal === null) throw invalid("not a value");
    const n = Number(literal);
    if (!Number.isFinite(n) || Object.is(n, -0) || decimal(literal) !== decimal(JSON.stringify(n))) throw invalid("not exact");
    return n;
  }
}

// decimal writes a number as its digits without zeros at the ends, and an exponent.
function decimal(literal) {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(literal);
  const digits = (whole + fraction).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  if (short === "") return "0";
  return `${sign}${short}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - short.length)}`;
}
