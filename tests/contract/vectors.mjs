// A second opinion on the golden vectors: routing and canonical JSON as another language has them.
// Prints what differs; exits 0 only when nothing does.
import crypto from "node:crypto";
import fs from "node:fs";
import zlib from "node:zlib";

const [folder] = process.argv.slice(2);
const read = (name) => JSON.parse(fs.readFileSync(`${folder}/${name}.json`, "utf8"));
const sha256 = (text) => crypto.createHash("sha256").update(text, "utf8").digest("hex");
const normalise = (text) =>
  text.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, "").toLowerCase();

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

function withoutNulls(value) {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(kept.map(([key, member]) => [key, withoutNulls(member)]));
}

let checked = 0;
let failed = 0;
function expect(name, actual, expected) {
  checked += 1;
  if (actual === expected) return;
  failed += 1;
  console.log(`${name}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
}

for (const c of read("lanes").cases) {
  const key = normalise(c.tenant_id) + (c.mode === "BURST" ? normalise(c.doc_id) : "");
  const crc = zlib.crc32(Buffer.from(key, "utf8"));
  expect(c.name, key, c.routing_key_used);
  expect(c.name, crc, c.crc32);
  expect(c.name, crc % 16, c.lane);
  expect(c.name, key.length <= 128 ? key : sha256(key), c.partition_key);
}

const { values, requests } = read("canonical");
for (const c of values) {
  expect(c.name, canonical(JSON.parse(c.json)), c.canonical);
  expect(c.name, sha256(c.canonical), c.sha256);
}
const counted = [
  "tenant_id", "request_type", "input_ref", "output_ref", "payload", "schema_version",
];
for (const c of requests) {
  const request = JSON.parse(c.json);
  request.request_type = request.request_type.replaceAll("→", "_");
  const form = canonical(withoutNulls(Object.fromEntries(counted.map((k) => [k, request[k]]))));
  expect(c.name, form, c.canonical);
  expect(c.name, sha256(form), c.idempotency_hash);
}

console.log(`${checked - failed} of ${checked} hold`);
process.exit(failed === 0 && checked > 0 ? 0 : 1);
