"""Acme carries out x.acme.echo: a service in Python."""

import asyncio, base64, datetime, hashlib, json, os, time, urllib.request

import nats
import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

EXECUTOR, TYPE = "x-acme", "x.acme.echo"
LEEWAY = datetime.timedelta(seconds=5)
KEYS = {"at": 0.0, "set": {}}


class Refused(Exception):
    def __init__(self, code, reason, status="failed"):
        self.report = {"status": status, "code": code, "reason": reason}


def strict(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member stands twice")
    return dict(pairs)


def load(text):
    return json.loads(text, object_pairs_hook=strict)


def b64(text):
    raw = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        raise ValueError("one spelling")
    return raw


def key_set():
    if time.monotonic() - KEYS["at"] > 10 or not KEYS["set"]:
        with urllib.request.urlopen(os.environ["WRIT_URL"] + "/.well-known/jwks.json") as answer:
            KEYS.update(at=time.monotonic(), set=json.load(answer))
    return KEYS["set"]


def ticket_of(token, keys):
    head, claims, sig = token.split(".")
    header = load(b64(head))
    kid = header.get("kid", "")
    if b64(head) != rfc8785.dumps({"alg": "EdDSA", "kid": kid, "typ": "writ-ticket+jws"}):
        raise Refused("SIGNATURE_INVALID", "protected header")
    key = next((k for k in keys["keys"] if k["kid"] == kid), None)
    if key is None:
        raise Refused("KEY_UNKNOWN", "no such key")
    if key.get("revoked"):
        raise Refused("KEY_REVOKED", "key is revoked")
    Ed25519PublicKey.from_public_bytes(b64(key["x"])).verify(b64(sig), (head + "." + claims).encode())
    if key["role"] != "router":
        raise Refused("KEY_ROLE", "not a router's")
    ticket = load(b64(claims))
    if rfc8785.dumps(ticket) != b64(claims) or not whole(ticket, REQUIRED, OPTIONAL) or not whole(ticket["actor"], ACTOR, ACTOR_OPTIONAL):
        raise Refused("SIGNATURE_INVALID", "claims")
    if "scope" in ticket and not whole(ticket["scope"], SCOPE, SCOPE_OPTIONAL):
        raise Refused("SIGNATURE_INVALID", "scope")
    return ticket


REQUIRED = set("iss intent_id type executor actor position attempt begin_by deadline policy_digest".split())
OPTIONAL = set("obligations scope pins inputs".split())
ACTOR, ACTOR_OPTIONAL = {"user_id", "tenant"}, {"roles", "session_id"}
SCOPE, SCOPE_OPTIONAL = set("task_id plan_id revision step skills deadline".split()), {"return_spec", "input_key", "input_keys"}
BODY = set("version intent actor constraints context trace_id".split())


def whole(claims, required, optional):
    """Claims are closed; those that are always there are there, and none but an empty list is null."""
    return required <= set(claims) <= required | optional and all(v is not None for k, v in claims.items() if k != "skills")


def admit(raw):
    keys, dispatch = key_set(), load(raw)
    if set(dispatch) != {"header", "payload", "ticket"}:
        raise Refused("SCHEMA_INVALID", "not a dispatch")
    t = ticket_of(dispatch["ticket"], keys)
    payload = rfc8785.dumps(dispatch["payload"])
    signed = dispatch["header"] + "." + base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    if t["iss"] != keys["origin"] or t["executor"] != EXECUTOR or not isinstance(t["position"], int):
        raise Refused("SIGNATURE_INVALID", "the ticket is for something else")
    if t["intent_id"] != "sha256:" + hashlib.sha256(signed.encode()).hexdigest():
        raise Refused("SIGNATURE_INVALID", "not the intent that the ticket names")
    envelope = dispatch["payload"]
    if not BODY.issuperset(envelope) or envelope["intent"]["type"] != t["type"]:
        raise Refused("SIGNATURE_INVALID", "ticket is for another type")
    if t["type"] != TYPE:
        raise Refused("UNKNOWN_INTENT", "not carried out here")
    for duty in t.get("obligations") or []:
        known(duty)
    deadline = datetime.datetime.fromisoformat(t["deadline"])
    if deadline <= datetime.datetime.now(datetime.timezone.utc):
        raise Refused("EXECUTOR_TIMEOUT", "the deadline has passed")
    begin_by = datetime.datetime.fromisoformat(t["begin_by"])
    if begin_by + LEEWAY <= datetime.datetime.now(datetime.timezone.utc):
        raise Refused("EXECUTOR_TIMEOUT", "begin_by has passed; nothing was started", "unstarted")
    return envelope["intent"]["args"]


def known(duty):
    """Duties that say nothing to an echo are kept by doing nothing."""
    name, value = duty["name"], duty["value"]
    texts = isinstance(value, list) and all(isinstance(p, str) for p in value)
    fits = {"mask": texts, "max_bytes": type(value) is int and 0 <= value < 2**31, "ttl_max": type(value) is int, "driver": isinstance(value, str), "notify": True}
    if not fits.get(name, False):
        raise Refused("POLICY_DENIED", "an obligation that this executor does not know")


def answer(raw):
    try:
        return {"status": "done", "code": "OK", "result": {"text": admit(raw)["text"]}}
    except Refused as refused:
        return refused.report
    except (InvalidSignature, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return {"status": "failed", "code": "SIGNATURE_INVALID", "reason": type(error).__name__}


async def main():
    seed = open(os.environ["WRIT_NATS_SEED_FILE"]).read().strip()
    nc = await nats.connect(os.environ["WRIT_NATS_URL"], nkeys_seed_str=seed, inbox_prefix="_INBOX_" + EXECUTOR)

    async def handle(message):
        await message.respond(json.dumps(answer(message.data)).encode())

    await nc.subscribe("writ.exec." + TYPE, queue=EXECUTOR, cb=handle)
    await asyncio.Event().wait()


asyncio.run(main())
