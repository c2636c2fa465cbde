// Graphs of runs, and their patches, as docs/spec/state.md says it. Conditions are CEL, which this auditor does
// not evaluate.

import { must } from "./bundle.mjs";

const MAX_NODES = 200;
const MAX_EDGES = 1000;
const CURRENT = "CURRENT_NODE";
const EFFECTS = { python: "pure", approval: "idempotent", agent: "once" };

// reads are the nodes, and of each the output, that the templates of a value name.
function reads(v) {
  if (typeof v === "object" && v !== null) return Object.values(v).flatMap(reads);
  if (typeof v !== "string") return [];
  return [...v.matchAll(/(\$?)\$\{([^}]*)\}/g)].filter(([, escaped]) => !escaped).flatMap(([, , path]) => {
    const tokens = [...path.matchAll(/\[("(?:[^"\\]|\\.)*")\]|\[(\d+)\]|([A-Za-z0-9_-]+)/g)].map(([, quoted, index, name]) => (quoted ? JSON.parse(quoted) : index ? Number(index) : name));
    if (tokens[0] !== "nodes") return [];
    const kept = tokens.slice(3);
    const element = kept.findIndex((t) => typeof t === "number");
    const output = (element < 0 ? kept : kept.slice(0, element)).map((t) => `/${t.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
    return [{ node: tokens[1], output: tokens[2] === "outputs" ? output : undefined }];
  });
}

// conditionReads are the outputs that a condition names: the members up to an element or a call.
function conditionReads(text = "") {
  return [...text.matchAll(/\bnodes((?:\.[A-Za-z_]\w*\b(?!\s*\()|\[(?:"[^"]*"|'[^']*')\])+)/g)].flatMap(([, path]) => {
    const [node, part, ...kept] = [...path.matchAll(/\.(\w+)|\[["']([^"']*)["']\]/g)].map(([, name, quoted]) => name ?? quoted);
    return part === "outputs" ? [{ node, output: kept.map((t) => `/${t.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("") }] : [];
  });
}

// before gives for each node those that come before it, and refuses circles.
function before(nodes, edges) {
  const into = new Map(nodes.map((n) => [n.id, edges.filter((e) => e.to === n.id).map((e) => e.from)]));
  const found = new Map();
  const visit = (id, path) => {
    must(!path.includes(id), "edges in a circle");
    if (!found.has(id)) found.set(id, new Set(into.get(id).flatMap((from) => [from, ...visit(from, [...path, id])])));
    return found.get(id);
  };
  for (const n of nodes) visit(n.id, []);
  return found;
}

// patched gives a graph with a patch over it, and what the patch comes to. values are of each node by id whether it
// runs, has begun and has ended; at is the node of the context; skill gives the pin of a name.
export function patched(graph, patch, values, at, skill) {
  const value = (id) => values.get(id) ?? {};
  let current;
  const named = (id) => {
    if (id !== CURRENT) return id;
    const running = graph.nodes.filter((n) => value(n.id).runs).map((n) => n.id);
    must(at ? graph.nodes.some((n) => n.id === at) : running.length === 1, "no node that CURRENT_NODE stands for");
    return (current = at || running[0]);
  };
  const removed = (patch.remove_edges ?? []).map((e) => ({ from: named(e.from), to: named(e.to) }));
  const added = patch.add_edges.map((e) => ({ ...e, from: named(e.from), to: named(e.to) }));
  must(patch.add_nodes.length + added.length + removed.length > 0, "a patch that changes nothing");
  for (const e of [...removed, ...added]) must(!value(e.to).begun, "an edge changes that enters a node which has begun");
  let edges = graph.edges;
  for (const e of removed) {
    must(edges.some((x) => x.from === e.from && x.to === e.to), "no such edge");
    edges = edges.filter((x) => x.from !== e.from || x.to !== e.to);
  }
  edges = [...edges, ...added];
  const nodes = [...graph.nodes, ...patch.add_nodes];
  const ids = new Set(nodes.map((n) => n.id));
  must(nodes.length <= MAX_NODES && edges.length <= MAX_EDGES, "a graph that is too large");
  must(ids.size === nodes.length && !ids.has(CURRENT), "an id that is taken");
  must(edges.every((e) => ids.has(e.from) && ids.has(e.to)), "an edge to no node");
  must(new Set(edges.map((e) => `${e.from} ${e.to}`)).size === edges.length, "two edges between two nodes");
  const earlier = before(nodes, edges);
  const kept = new Map(nodes.map((n) => [n.id, new Set(n.outputs ?? [])]));
  for (const n of nodes.filter((n) => !value(n.id).begun)) {
    const conditions = edges.filter((e) => e.to === n.id).flatMap((e) => conditionReads(e.condition));
    for (const { node, output } of [...reads(n.inputs), ...reads(n.from), ...conditions]) {
      must(earlier.get(n.id).has(node), "reads a node that does not come before");
      must(output === undefined || output === "/success" || !value(node).ended || kept.get(node).has(output), "reads what an outcome has not kept");
      if (output !== undefined) kept.get(node).add(output);
    }
  }
  const facts = patch.add_nodes.map((n) => {
    const f = { id: n.id, type: n.type, effect: EFFECTS[n.type] };
    if (n.type === "agent") f.fn = n.fn;
    if (n.type !== "function") return f;
    const pin = skill(n.fn);
    must(pin, "no approved skill");
    return { ...f, fn: pin.skill, effect: pin.effect };
  });
  const same = (a, b) => a.from === b.from && a.to === b.to && (a.condition ?? "") === (b.condition ?? "");
  const differ = (a, b) => a.filter((e) => !b.some((x) => same(e, x))).map((e) => e.to);
  const rewired = [...new Set([...differ(graph.edges, edges), ...differ(edges, graph.edges)])].filter((id) => graph.nodes.some((n) => n.id === id)).sort();
  const entered = new Set(edges.map((e) => e.to));
  const had = (n) => n.cut_off || graph.edges.some((e) => e.to === n.id);
  const next = nodes.map((n, i) => ({ ...n, outputs: [...kept.get(n.id)].sort(), cut_off: i < graph.nodes.length && had(n) && !entered.has(n.id) && !value(n.id).begun }));
  return { graph: { ...graph, nodes: next, edges }, fact: { ...(current && { current }), nodes: facts, rewired } };
}
