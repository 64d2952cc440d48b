// A process that claims a pipeline as a runner does, and then blocks its event loop
// for as long as it is told. Uses the build, because Node.js 20 does not run TypeScript. Prints JSON lines.
import { Heartbeats } from "../../dist/data-plane/heartbeat.js";
import { monotonicMs } from "../../dist/data-plane/heartbeat-messages.js";
import { leaseTiming } from "../../dist/domain/lease.js";
import { openMetaStore } from "../../dist/meta-store/postgres/index.js";

const { url, runnerId, leaseMs, busyMs, leaveHeartbeatsRunning } = JSON.parse(process.argv[2]);
const say = (report) => process.stdout.write(`${JSON.stringify(report)}\n`);
const log = {
  debug() {},
  info() {},
  warn: (fields, text) => say({ ...fields, text }),
  error: (_, text) => say({ text }),
};

const store = openMetaStore({ url, applicationName: "vitrina busy", maxConnections: 1 });
const heartbeats = new Heartbeats({ renewal: store.queue.leaseRenewal(), runnerId, timing: leaseTiming(leaseMs), log });
await heartbeats.start();
const heldSince = monotonicMs();
const claim = await store.queue.claimNext(runnerId, leaseMs);
const heartbeat = heartbeats.hold(claim, heldSince, log);
let turns = 0;
const timer = setInterval(() => {
  turns += 1;
}, 1);
say({ step: "busy" });
const end = monotonicMs() + busyMs;
while (monotonicMs() < end);
say({ step: "free", turns });
clearInterval(timer);
say({ step: "ended", status: await store.queue.finishRun(claim, { kind: "succeeded" }), lost: heartbeat.lost });
await store.close();
if (!leaveHeartbeatsRunning) await heartbeats.close();
