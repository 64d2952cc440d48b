import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import { nextRunAt, parseSchedule } from "../../src/domain/schedule.ts";
import { runs } from "../support/seed.ts";

const cronLike = fc
  .array(fc.string({ unit: fc.constantFrom(..."0123456789*,/-?#LWP@:+mondTHSM"), minLength: 1, maxLength: 6 }), {
    minLength: 1,
    maxLength: 7,
  })
  .map((words) => words.join(" "));
const anyText = fc.oneof(fc.string(), fc.string({ unit: "binary" }), cronLike);
const anyMoment = fc.date({ min: new Date("2000-01-01"), max: new Date("2100-01-01"), noInvalidDate: true });
const everySeconds = fc.integer({ min: 1, max: 1000 * 24 * 3600 });

const field = (min: number, max: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constant("*"),
    fc.integer({ min, max }).map(String),
    fc.integer({ min: 1, max }).map((step) => `*/${step}`),
    fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 4 }).map((values) => values.join(",")),
  );
const timeZone = fc.constantFrom(
  "UTC",
  "Europe/Berlin",
  "Europe/Moscow",
  "America/Sao_Paulo",
  "Australia/Lord_Howe",
  "Asia/Kathmandu",
);
/** Days up to 28 exist in every month, so each of these matches some day. */
const validCron = fc
  .tuple(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6), timeZone)
  .map((parts) => parts.join(" "));

describe("schedules", () => {
  it("R4.8 any text is a schedule or is refused with a sentence", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        try {
          parseSchedule(text);
        } catch (error) {
          expect(error).toBeInstanceOf(VitrinaError);
          expect(error).toMatchObject({ code: "SCHEDULE_INVALID", message: expect.stringMatching(/\.$/) });
        }
      }),
      { numRuns: runs(500, 5000) },
    );
  });

  it("R4.8 the short form and ISO 8601 mean the same", () => {
    const count = fc.integer({ min: 0, max: 99 });
    fc.assert(
      fc.property(count, count, count, fc.integer({ min: 1, max: 99 }), (days, hours, minutes, seconds) => {
        const short = parseSchedule(`${days}d${hours}h${minutes}m${seconds}s`);
        expect(short).toEqual(parseSchedule(`P${days}DT${hours}H${minutes}M${seconds}S`));
        expect(short).toEqual({
          kind: "interval",
          everyMs: 1000 * (((days * 24 + hours) * 60 + minutes) * 60 + seconds),
        });
      }),
    );
  });

  it("R4.8 an interval is due strictly later, within one interval, on the beat of the last due time", () => {
    fc.assert(
      fc.property(everySeconds, anyMoment, anyMoment, (seconds, after, lastDue) => {
        const everyMs = seconds * 1000;
        const next = nextRunAt(parseSchedule(`${seconds}s`), after, lastDue).getTime();
        expect(next).toBeGreaterThan(after.getTime());
        expect(next - after.getTime()).toBeLessThanOrEqual(everyMs);
        expect(Math.abs(next - lastDue.getTime()) % everyMs).toBe(0);
      }),
    );
  });

  it("R4.8 cron is due strictly later, on a whole minute, and nothing is due in between", () => {
    fc.assert(
      fc.property(validCron, anyMoment, fc.double({ min: 0, max: 1, noNaN: true }), (text, after, share) => {
        const schedule = parseSchedule(text);
        const next = nextRunAt(schedule, after);
        expect(next.getTime()).toBeGreaterThan(after.getTime());
        expect(next.getTime() % 60_000).toBe(0);
        const between = new Date(after.getTime() + Math.floor((next.getTime() - 1 - after.getTime()) * share));
        expect(nextRunAt(schedule, between)).toEqual(next);
      }),
      { numRuns: runs(300) },
    );
  });
});
