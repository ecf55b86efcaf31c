// What the JavaScript client sees. `node scenarios.cjs NAME CONNECTION_STRING` runs one scenario and
// ends with 0 if all its assertions hold.
const assert = require("node:assert/strict");
const { ServiceBusClient } = require("@azure/service-bus");

const QUEUE = "work";
const SESSIONS = "sessions";
const TOPIC = "events";
const LONG = { maxWaitTimeInMs: 20000 };

const scenarios = {
  async send_receive_complete(client) {
    await client.createSender(QUEUE).sendMessages({
      body: { page: 1 },
      messageId: "m1",
      subject: "pages",
      correlationId: "c1",
      contentType: "application/json",
      applicationProperties: { text: "a", whole: 7, part: 1.5, yes: true },
    });
    const receiver = client.createReceiver(QUEUE);
    const [message] = await receiver.receiveMessages(1, LONG);
    assert.deepEqual(message.body, { page: 1 });
    assert.equal(message.messageId, "m1");
    assert.equal(message.subject, "pages");
    assert.equal(message.correlationId, "c1");
    assert.equal(message.contentType, "application/json");
    assert.deepEqual(message.applicationProperties, {
      text: "a",
      whole: 7,
      part: 1.5,
      yes: true,
    });
    assert.equal(message.deliveryCount, 0);
    assert.equal(message.state, "active");
    assert.ok(message.lockedUntilUtc > new Date());
    await receiver.completeMessage(message);
    assert.deepEqual(await receiver.peekMessages(1), []);
  },

  async batches(client) {
    const sender = client.createSender(QUEUE);
    const batch = await sender.createMessageBatch();
    let count = 0;
    while (count < 500 && batch.tryAddMessage({ body: Buffer.alloc(400, 1), messageId: `b${count}` })) {
      count += 1;
    }
    await sender.sendMessages(batch);
    const receiver = client.createReceiver(QUEUE);
    const ids = [];
    while (ids.length < count) {
      for (const message of await receiver.receiveMessages(100, LONG)) {
        ids.push(message.messageId);
        await receiver.completeMessage(message);
      }
    }
    assert.deepEqual(ids, [...Array(count).keys()].map((n) => `b${n}`));
  },

  async abandon(client) {
    await client.createSender(QUEUE).sendMessages({ body: "again", applicationProperties: { a: 1 } });
    const receiver = client.createReceiver(QUEUE);
    const [first] = await receiver.receiveMessages(1, LONG);
    await receiver.abandonMessage(first, { a: 2, why: "busy" });
    const [second] = await receiver.receiveMessages(1, LONG);
    assert.equal(second.deliveryCount, 1);
    assert.deepEqual(second.applicationProperties, { a: 2, why: "busy" });
    await receiver.completeMessage(second);
  },

  async dead_letter(client) {
    await client.createSender(QUEUE).sendMessages({ body: "bad", messageId: "dead" });
    const receiver = client.createReceiver(QUEUE);
    const [message] = await receiver.receiveMessages(1, LONG);
    await receiver.deadLetterMessage(message, {
      deadLetterReason: "Unreadable",
      deadLetterErrorDescription: "no JSON",
    });
    const dead = client.createReceiver(QUEUE, { subQueueType: "deadLetter" });
    const [found] = await dead.receiveMessages(1, LONG);
    assert.equal(found.messageId, "dead");
    assert.equal(found.deadLetterReason, "Unreadable");
    assert.equal(found.deadLetterErrorDescription, "no JSON");
    assert.equal(found.deadLetterSource, QUEUE);
    await dead.completeMessage(found);
  },

  async defer(client) {
    await client.createSender(QUEUE).sendMessages({ body: "later" });
    const receiver = client.createReceiver(QUEUE);
    const [message] = await receiver.receiveMessages(1, LONG);
    await receiver.deferMessage(message);
    const [found] = await receiver.receiveDeferredMessages([message.sequenceNumber]);
    assert.equal(found.body, "later");
    await receiver.completeMessage(found);
    assert.deepEqual(await receiver.peekMessages(1), []);
  },

  async renew(client) {
    await client.createSender(QUEUE).sendMessages({ body: "slow" });
    const receiver = client.createReceiver(QUEUE);
    const [message] = await receiver.receiveMessages(1, LONG);
    const until = await receiver.renewMessageLock(message);
    assert.ok(until >= message.lockedUntilUtc - 1);
    await receiver.completeMessage(message);
  },

  async receive_and_delete(client) {
    await client.createSender(QUEUE).sendMessages([{ body: 1 }, { body: 2 }]);
    const receiver = client.createReceiver(QUEUE, { receiveMode: "receiveAndDelete" });
    const bodies = [];
    while (bodies.length < 2) {
      for (const message of await receiver.receiveMessages(2, LONG)) bodies.push(message.body);
    }
    assert.deepEqual(bodies, [1, 2]);
    assert.deepEqual(await receiver.peekMessages(1), []);
  },

  async subscribe(client) {
    const receiver = client.createReceiver(TOPIC, "ocr");
    const seen = [];
    const done = new Promise((resolve, reject) => {
      receiver.subscribe({
        async processMessage(message) {
          seen.push(message.messageId);
          if (seen.length === 3) resolve();
        },
        async processError(problem) {
          reject(problem.error);
        },
      });
    });
    const sender = client.createSender(TOPIC);
    for (const [id, service] of [["t1", "ocr"], ["x", "sis"], ["t2", "ocr"], ["t3", "ocr"]]) {
      await sender.sendMessages({ body: id, messageId: id, applicationProperties: { service } });
    }
    await done;
    assert.deepEqual(seen, ["t1", "t2", "t3"]);
  },

  async rules(client) {
    const rules = client.createRuleManager(TOPIC, "ocr");
    await rules.createRule("lane", { sqlExpression: "lane > 3" });
    await rules.createRule("both", { subject: "s", applicationProperties: { service: "sis" } });
    await rules.deleteRule("service");
    const found = await rules.getRules();
    assert.deepEqual(found.map((rule) => rule.name), ["both", "lane"]);
    assert.equal(found[0].filter.subject, "s");
    assert.deepEqual(found[0].filter.applicationProperties, { service: "sis" });
    assert.equal(found[1].filter.sqlExpression, "lane > 3");
    await assert.rejects(rules.createRule("lane", { sqlExpression: "1=1" }), {
      code: "MessagingEntityAlreadyExists",
    });
    await assert.rejects(rules.deleteRule("gone"), { code: "MessagingEntityNotFound" });
    await assert.rejects(rules.createRule("bad", { sqlExpression: "lane >" }));
    const sender = client.createSender(TOPIC);
    for (const [messageId, lane] of [["low", 3], ["high", 4]]) {
      await sender.sendMessages({ messageId, body: 1, applicationProperties: { lane } });
    }
    const [message] = await client.createReceiver(TOPIC, "ocr").receiveMessages(2, LONG);
    assert.equal(message.messageId, "high");
  },

  async sessions(client) {
    const sender = client.createSender(SESSIONS);
    await sender.sendMessages([
      { body: 1, sessionId: "a" },
      { body: 2, sessionId: "b" },
      { body: 3, sessionId: "a" },
    ]);
    const first = await client.acceptSession(SESSIONS, "a");
    const bodies = [];
    while (bodies.length < 2) {
      for (const message of await first.receiveMessages(2, LONG)) {
        bodies.push(message.body);
        await first.completeMessage(message);
      }
    }
    assert.deepEqual(bodies, [1, 3]);
    await first.setSessionState({ seen: 2 });
    assert.deepEqual(await first.getSessionState(), { seen: 2 });
    await first.renewSessionLock();
    await assert.rejects(client.acceptSession(SESSIONS, "a"), { code: "SessionCannotBeLocked" });
    const next = await client.acceptNextSession(SESSIONS);
    assert.equal(next.sessionId, "b");
    const [message] = await next.receiveMessages(1, LONG);
    await next.completeMessage(message);
    await first.close();
    const again = await client.acceptSession(SESSIONS, "a");
    assert.deepEqual(await again.getSessionState(), { seen: 2 });
  },

  async schedule(client) {
    const sender = client.createSender(QUEUE);
    const later = new Date(Date.now() + 3600 * 1000);
    const soon = new Date(Date.now() + 300);
    const [number] = await sender.scheduleMessages({ body: "never" }, later);
    const receiver = client.createReceiver(QUEUE);
    const [peeked] = await receiver.peekMessages(1);
    assert.equal(peeked.state, "scheduled");
    await sender.cancelScheduledMessages(number);
    await sender.scheduleMessages({ body: "soon" }, soon);
    const [message] = await receiver.receiveMessages(1, LONG);
    assert.equal(message.body, "soon");
    assert.ok(message.enqueuedTimeUtc >= new Date(soon - 1));
    await receiver.completeMessage(message);
  },

  async missing_entity(client) {
    await assert.rejects(client.createSender("nowhere").sendMessages({ body: 1 }), {
      code: "MessagingEntityNotFound",
    });
  },

  async too_large(client) {
    const message = { body: Buffer.alloc(2 * 1024 * 1024) };
    await assert.rejects(client.createSender(QUEUE).sendMessages(message), {
      code: "MessageSizeExceeded",
    });
  },
};

async function main([name, connectionString]) {
  if (name === "list") {
    console.log(Object.keys(scenarios).join("\n"));
    return;
  }
  const client = new ServiceBusClient(connectionString, { retryOptions: { maxRetries: 0 } });
  await scenarios[name](client);
  await client.close();
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
