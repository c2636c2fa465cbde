// Which Ed25519 keys are admitted: canonical, of prime order, named by their thumbprint.

import { createHash } from "node:crypto";

// base64url decodes the one spelling of bytes: no padding, no unused bits.
export function base64url(text) {
  if (typeof text !== "string" || !/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return null;
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : null;
}

// rawSignature reads ed25519:<base64 with padding> in its one spelling.
export function rawSignature(text) {
  if (typeof text !== "string" || !/^ed25519:[A-Za-z0-9+/]{86}==$/.test(text)) return null;
  const bytes = Buffer.from(text.slice(8), "base64");
  return bytes.toString("base64") === text.slice(8) ? bytes : null;
}

export const sha256 = (data, encoding) => createHash("sha256").update(data).digest(encoding);

// admit gives the key of a JWK, or null.
export function admit(jwk) {
  if (jwk.kty !== "OKP" || jwk.crv !== "Ed25519" || jwk.alg !== "EdDSA" || jwk.use !== "sig") return null;
  const raw = base64url(jwk.x);
  if (raw === null || raw.length !== 32 || !primeOrder(raw)) return null;
  if (jwk.kid !== sha256(`{"crv":"Ed25519","kty":"OKP","x":"${jwk.x}"}`, "base64url")) return null;
  if (jwk.raw && jwk.role !== "operator") return null;
  const end = jwk.not_after === undefined ? Infinity : Date.parse(jwk.not_after);
  return Number.isNaN(end) ? null : { ...jwk, end };
}

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const mod = (a) => ((a % P) + P) % P;

function power(base, exponent) {
  let result = 1n;
  for (let b = mod(base), e = exponent; e > 0n; e >>= 1n, b = (b * b) % P) if (e & 1n) result = (result * b) % P;
  return result;
}

const inverse = (a) => power(a, P - 2n);
const D = mod(-121665n * inverse(121666n));
const ROOT = power(2n, (P - 1n) / 4n); // of -1

// decode gives the affine point of a canonical encoding (RFC 8032 §5.1.3), or null.
function decode(raw) {
  const n = BigInt("0x" + Buffer.from(raw).reverse().toString("hex"));
  const sign = n >> 255n;
  const y = n & (2n ** 255n - 1n);
  if (y >= P) return null;
  const u = mod(y * y - 1n);
  const v = mod(D * y * y + 1n);
  let x = mod(u * inverse(v));
  x = power(x, (P + 3n) / 8n);
  if (mod(x * x * v) !== u) x = mod(x * ROOT);
  if (mod(x * x * v) !== u) return null;
  if (x === 0n && sign === 1n) return null;
  return { x: (x & 1n) === sign ? x : P - x, y };
}

// add is the complete addition law (RFC 8032 §5.1.4).
function add(a, b) {
  const A = mod((a.Y - a.X) * (b.Y - b.X));
  const B = mod((a.Y + a.X) * (b.Y + b.X));
  const C = mod(2n * D * a.T * b.T);
  const E = mod(2n * a.Z * b.Z);
  const [e, f, g, h] = [B - A, E - C, E + C, B + A];
  return { X: mod(e * f), Y: mod(g * h), T: mod(e * h), Z: mod(f * g) };
}

const isIdentity = (p) => p.X === 0n && p.Y === p.Z;

function primeOrder(raw) {
  const affine = decode(raw);
  if (affine === null) return false;
  const point = { X: affine.x, Y: affine.y, Z: 1n, T: mod(affine.x * affine.y) };
  if (isIdentity(point)) return false;
  let sum = { X: 0n, Y: 1n, Z: 1n, T: 0n };
  for (let p = point, e = L; e > 0n; e >>= 1n, p = add(p, p)) if (e & 1n) sum = add(sum, p);
  return isIdentity(sum);
}
