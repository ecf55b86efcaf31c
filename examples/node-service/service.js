// A platform service in one file: it counts the words of a text. README.md says what it promises.
"use strict";
const crypto = require("node:crypto");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");
const { fileURLToPath, pathToFileURL } = require("node:url");
const { ServiceBusClient } = require("@azure/service-bus");

const setting = (name, otherwise) => process.env[`LUCIUS_${name}`] ?? otherwise;
const ACK_MS = setting("ACK_SECONDS", 5) * 1000;
const GRACE_MS = setting("GRACE_SECONDS", 20) * 1000;
const SKEW_MS = setting("MAX_CLOCK_SKEW", 2) * 1000;
const ANSWER_MS = 5000;
const LOOK_MS = 100;
const SLOTS = Number(setting("CONCURRENCY", 4)); // over all lanes
const capacity = { instance_id: crypto.randomUUID(), slots: SLOTS }; // a hint for the orchestrator
const STORE = setting("DEDUP_STORE", "state");
const STEP_TYPE = "WORDS";
const MOST_RUNS = 3;
const LANES = [...Array(16).keys()];
const REFUSALS = [400, 404, 409, 413, 422]; // as final as 2xx; anything else is tried again
const NAMES = ["jobId", "stepId", "tenant_id", "lease_id", "correlation_id", "traceparent"];

/** Ends an attempt without a RESULT; `settle` is what becomes of its message. */
const stopped = (why, settle = "completeMessage") => Object.assign(new Error(why), { settle });
const shuttingDown = () => stopped("the service is shutting down", "abandonMessage");
/** Ends an attempt with a RESULT. */
const failed = (code, message, failure_class = "NON_RETRYABLE") => {
  const status = failure_class === "RETRYABLE" ? "FAILED_RETRY" : "FAILED_FINAL";
  const outcome = { status, failure_class, error: { code, message } };
  return Object.assign(new Error(message), { outcome });
};
const sha256 = (content) => crypto.createHash("sha256").update(content).digest("hex");
const log = (event, why, facts) =>
  console.log(JSON.stringify({ at: new Date(), event, why: String(why), ...facts }));

// Directives. Only what is used here is looked at: other fields may come and go.
const isText = (value) => typeof value === "string";
const isPositive = (value) => typeof value === "number" && value > 0;
const USED = [
  [isText, [...NAMES, "step_type"]],
  [(value) => Date.parse(value) > 0, ["lease_expires_at"]],
  [isPositive, ["attempt_no", "lease_seconds", "heartbeat_seconds"]],
  [(value) => isText(value?.uri), ["input_ref", "workspace_ref"]],
  [(value) => LANES.includes(value), ["lane"]],
  [(value) => value instanceof Object, ["payload"]],
];

/** Throws, with the reason, if nobody can work with it. */
function read(body) {
  const d = JSON.parse(String(body));
  const version = d?.schema_version ?? "1";
  if (!/^1(\.\d+)?$/.test(version)) throw new Error(`schema_version ${version} is not known`);
  const wrong = USED.flatMap(([isUsable, names]) => names.filter((name) => !isUsable(d?.[name])));
  if (wrong.length) throw new Error(`missing or unusable: ${wrong.join(", ")}`);
  if (d.step_type !== STEP_TYPE) throw new Error(`${d.step_type} is not done here`);
  const file = path.join(STORE, `${sha256(JSON.stringify([d.jobId, d.stepId]))}.json`);
  return { ...d, file, leaseEnds: onOurClock(d.lease_expires_at) };
}

// The dedup store: one file for each step of a job. To read it, decide and replace it takes no
// await, so nothing comes in between; but only one process at a time may have the folder.
function save(d, record) {
  fs.writeFileSync(`${d.file}.draft`, JSON.stringify(record), { flush: true });
  fs.renameSync(`${d.file}.draft`, d.file); // a kill leaves the old record or the new one
}

/** What is known of this attempt; throws if it must not be worked on, or not any more. */
function recordOf(d) {
  const fresh = { attempt_no: d.attempt_no, lease_id: d.lease_id, epoch: 0 };
  const known = fs.existsSync(d.file) ? JSON.parse(fs.readFileSync(d.file, "utf8")) : fresh;
  if (known.attempt_no > d.attempt_no) throw stopped("a newer attempt is known");
  const record = known.attempt_no === d.attempt_no ? known : fresh;
  if (record.lease_id !== d.lease_id) throw stopped("the attempt has another lease");
  if (!record.result && performance.now() > d.leaseEnds) throw stopped("the lease is over");
  return record;
}

// Replies, the way that the directive says.
const client = new ServiceBusClient(setting("SERVICEBUS_CONNECTION"), {
  retryOptions: { maxRetries: 0, timeoutInMs: ANSWER_MS, retryDelayInMs: 500 },
});
const senders = LANES.map((lane) => client.createSender(`global-bus-replies-p${lane}`));
const onOurClock = (time) => performance.now() + Date.parse(time) - Date.now() + SKEW_MS;

/** The traceparent goes back as it came: nothing here records a span that could be the parent. */
function reply(d, type, more) {
  const echoed = Object.fromEntries([...NAMES, "attempt_no"].map((name) => [name, d[name]]));
  return JSON.stringify({ type, ...echoed, timestamp: new Date(), ...more });
}

async function post(d, type, text) {
  const { callback_urls: urls, callback_token: token, traceparent } = d;
  if (!urls) {
    const leaseEnds = performance.now() + d.lease_seconds * 1000;
    const messageId = [d.jobId, d.stepId, d.attempt_no, d.lease_id, type].join(".");
    const applicationProperties = { type, jobId: d.jobId, traceparent };
    const message = { messageId, body: Buffer.from(text), applicationProperties };
    await senders[d.lane].sendMessages(message);
    return { status: 200, leaseEnds };
  }
  const authorization = `Bearer ${token}`;
  const headers = { "content-type": "application/json", authorization, traceparent };
  const call = { method: "POST", body: text, headers, signal: AbortSignal.timeout(ANSWER_MS) };
  const response = await fetch(urls[type.toLowerCase()], call);
  const { lease_expires_at, cancel_requested } = await response.json().catch(() => ({}));
  const status = response.ok ? 200 : response.status;
  return { status, leaseEnds: onOurClock(lease_expires_at), isCancelled: cancel_requested };
}

/** Sends it until the answer is final, and returns that. */
async function deliver(d, type, text, signal) {
  for (let pause = 200; ; pause = Math.min(pause * 2, 5000)) {
    const answer = await post(d, type, text).catch((error) => ({ status: String(error) }));
    if (answer.status === 200 || REFUSALS.includes(answer.status)) return answer;
    if ([401, 403].includes(answer.status) && performance.now() > d.leaseEnds) return answer;
    log("reply.unanswered", answer.status, { type, jobId: d.jobId });
    await sleep(pause, undefined, { signal });
  }
}

// The work.
async function countWords(d, epoch, signal) {
  const { min_length: least = 1, ...unknown } = d.payload;
  if (!Number.isInteger(least) || Object.keys(unknown).length) {
    throw failed("PAYLOAD_INVALID", "only min_length is known, a whole number");
  }
  if (epoch > MOST_RUNS) throw failed("CRASH_LOOP", "the service died at it", "RETRYABLE");
  if (!/^https?:/.test(d.input_ref.uri)) throw failed("INPUT_INVALID", "only http is read here");
  const own = [STEP_TYPE.toLowerCase(), String(d.attempt_no), epoch > 1 ? `~${epoch}` : ""];
  const file = path.join(fileURLToPath(d.workspace_ref.uri), ...own, "words.json");
  try {
    const response = await fetch(d.input_ref.uri, { signal });
    if (response.status === 404) throw failed("INPUT_NOT_FOUND", "there is no such input");
    if (!response.ok) throw new Error(`the input was answered ${response.status}`);
    const words = (await response.text()).split(/\s+/).filter((word) => word.length >= least);
    const content = JSON.stringify({ words: words.length });
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content, { flush: true });
    const facts = { sha256: sha256(content), size: content.length, media_type: "application/json" };
    const artifact = { name: path.basename(file), uri: pathToFileURL(file).href, ...facts };
    return { status: "SUCCEEDED", artifacts: [artifact] };
  } catch (error) {
    throw error.outcome ? error : failed("STORAGE_UNAVAILABLE", error.message, "RETRYABLE");
  }
}

// An attempt: claim, ACK, work, RESULT stored, RESULT sent.
async function run(d, turn) {
  turn.stop.signal.throwIfAborted();
  const epoch = recordOf(d).epoch + 1;
  save(d, { attempt_no: d.attempt_no, lease_id: d.lease_id, epoch });
  const working = turn.stop;
  const signal = working.signal;
  const hear = ({ status, leaseEnds, isCancelled }) => {
    if (leaseEnds > d.leaseEnds) d.leaseEnds = leaseEnds;
    if (REFUSALS.includes(status)) working.abort(stopped(`answered ${status}`));
    if (isCancelled) working.abort(failed("CANCELLED", "cancel was requested"));
  };
  const ack = reply(d, "ACK", { status: "ACKED", capacity });
  const answered = deliver(d, "ACK", ack, signal).then(hear, () => {});
  let heartbeat;
  const beating = setInterval(() => {
    if (performance.now() > d.leaseEnds) working.abort(stopped("the lease is over"));
    heartbeat = post(d, "HEARTBEAT", reply(d, "HEARTBEAT", { capacity })).then(hear, () => {});
  }, d.heartbeat_seconds * 1000);
  let outcome;
  try {
    await Promise.race([answered, sleep(ACK_MS)]);
    signal.throwIfAborted();
    recordOf(d); // the wait may have taken the rest of the lease
    outcome = await countWords(d, epoch, signal);
    await heartbeat; // its answer may ask to cancel
    signal.throwIfAborted();
  } catch (thrown) {
    const error = signal.reason ?? thrown;
    if (error.settle) throw error;
    outcome = error.outcome ?? failed("INTERNAL", String(error)).outcome;
  } finally {
    clearInterval(beating);
    working.abort(); // an ACK without an answer is not sent again: the RESULT implies it
    turn.stop = new AbortController();
  }
  save(d, { ...recordOf(d), result: reply(d, "RESULT", outcome) });
}

async function attend(d, turn, slot) {
  if (!recordOf(d).result) {
    await slot.take();
    await run(d, turn);
  }
  slot.free();
  const { isReported, result } = recordOf(d);
  if (isReported) return;
  const { status } = await deliver(d, "RESULT", result, turn.stop.signal);
  log("result.answered", status, { jobId: d.jobId, attempt_no: d.attempt_no });
  save(d, { ...recordOf(d), isReported: true });
}

// Messages. Those of one step are attended to one after the other: a copy finds what was done, and
// a newer attempt ends an older one.
let closed; // while shutting down: a promise that no more messages come
let unsettled = 0;
const atWork = new Map();

// Slots. A message is asked for with a slot in hand: one that waited here for a slot would be locked
// for this process while another one may be idle. Who waits for a slot gets it in turn.
let free = SLOTS;
const waiting = [];

function handOut() {
  for (; waiting.length && free > 0; free -= 1) waiting.shift()();
}

class Slot {
  isHeld = false;

  async take() {
    if (!this.isHeld) {
      await new Promise((goOn) => {
        waiting.push(goOn);
        handOut();
      });
      this.isHeld = true;
    }
    if (closed) throw shuttingDown();
  }

  free() {
    if (!this.isHeld) return;
    this.isHeld = false;
    free += 1;
    handOut();
  }
}

async function inTurn(d, slot) {
  for (let other = atWork.get(d.file); other; other = atWork.get(d.file)) {
    slot.free();
    if (other.attempt_no < d.attempt_no) other.stop.abort(stopped("a newer attempt is here"));
    await other.ended;
  }
  const turn = { attempt_no: d.attempt_no, stop: new AbortController() };
  const ending = attend(d, turn, slot).finally(() => atWork.delete(d.file));
  atWork.set(d.file, Object.assign(turn, { ended: ending.catch(() => {}) }));
  await ending.catch((error) => Promise.reject(turn.stop.signal.reason ?? error));
}

async function handle(receiver, message, slot) {
  // The client's own renewal goes by message id: it ends for all copies when one is settled.
  const renew = () => receiver.renewMessageLock(message).catch((error) => log("lock.lost", error));
  const renewing = setInterval(renew, Math.max((message.lockedUntilUtc - Date.now()) / 3, 1000));
  unsettled += 1;
  let d;
  try {
    d = read(message.body);
    await inTurn(d, slot);
    await receiver.completeMessage(message);
  } catch (error) {
    log("message.refused", error, { messageId: message.messageId });
    const [deadLetterReason, deadLetterErrorDescription] = ["DIRECTIVE_INVALID", error.message];
    const reason = { deadLetterReason, deadLetterErrorDescription };
    await closed; // what goes back to the bus must not come here again
    if (!d) await receiver.deadLetterMessage(message, reason);
    else if (error.settle) await receiver[error.settle](message);
    // whatever else went wrong may be over when the lock has run out and the message comes again
  } finally {
    clearInterval(renewing);
    slot.free();
    unsettled -= 1;
  }
}

async function lookAt(lane, receiver) {
  while (!closed) {
    const slot = new Slot();
    try {
      await slot.take();
      const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: LOOK_MS });
      if (message) handle(receiver, message, slot).catch((error) => log("bus.failed", error));
      else slot.free();
    } catch (error) {
      slot.free();
      if (closed) return;
      log("bus.failed", error, { lane });
      await sleep(LOOK_MS);
    }
  }
}

fs.mkdirSync(STORE, { recursive: true });
const lanes = LANES.map((lane) => {
  const raw = { skipParsingBodyAsJson: true, maxAutoLockRenewalDurationInMs: 0 };
  const receiver = client.createReceiver(`global-bus-p${lane}`, setting("SERVICE", "words"), raw);
  return { receiver, looks: lookAt(lane, receiver) };
});

// Health. Once all lanes have answered, the first stands for all.
let isReady = false;
async function probe() {
  const looks = lanes.slice(0, isReady ? 1 : 16).map(({ receiver }) => receiver.peekMessages(1));
  looks.push(fs.promises.access(`${setting("WORKSPACE_ROOT", ".")}/`, fs.constants.W_OK));
  const all = Promise.all(looks).then(() => true);
  isReady = await Promise.race([all, sleep(4000, false)]).catch(() => false);
  setTimeout(probe, 1000);
}
const health = http.createServer((request, response) => {
  const isFine = { "/healthz/live": true, "/healthz/ready": isReady && !closed }[request.url];
  response.writeHead(isFine ? 200 : 503).end();
});
health.listen(Number(setting("HEALTH_PORT", 8080)), setting("HEALTH_HOST", "0.0.0.0"));
probe();

process.once("SIGTERM", async () => {
  closed = Promise.race([Promise.all(lanes.map(({ looks }) => looks)), sleep(5000)]);
  free = Infinity; // who waits for a slot goes on, and sees that it is too late
  handOut();
  setTimeout(() => atWork.forEach(({ stop }) => stop.abort(shuttingDown())), GRACE_MS);
  await closed;
  while (unsettled > 0) await sleep(50);
  await Promise.race([client.close(), sleep(2000)]);
  process.exit(0);
});
