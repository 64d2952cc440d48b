import { describe, expect, it } from "vitest";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import { nextRunAt, parseSchedule, type Schedule } from "../../src/domain/schedule.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function refusalOf(action: () => unknown): VitrinaError {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(VitrinaError);
    expect(error).toMatchObject({ code: "SCHEDULE_INVALID" });
    return error as VitrinaError;
  }
  throw new Error("The schedule was accepted.");
}

/** The next due times, each asked for at the one before. */
function nextRuns(schedule: Schedule, after: string, count: number): string[] {
  let previous = new Date(after);
  return Array.from({ length: count }, () => {
    previous = nextRunAt(schedule, previous, previous);
    return previous.toISOString();
  });
}

describe("parseSchedule: intervals", () => {
  it.each([
    ["30s", 30 * SECOND],
    ["15m", 15 * MINUTE],
    ["2h", 2 * HOUR],
    ["1d", DAY],
    ["1h30m", 90 * MINUTE],
    ["1d2h3m4s", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND],
    ["1000d", 1000 * DAY],
    [" 15m ", 15 * MINUTE],
    ["PT15M", 15 * MINUTE],
    ["pt15m", 15 * MINUTE],
    ["P1DT2H", DAY + 2 * HOUR],
    ["P1W", 7 * DAY],
    ["PT1S", SECOND],
    ["PT90M", 90 * MINUTE],
  ])("R4.8 reads %j", (text, everyMs) => {
    expect(parseSchedule(text)).toEqual({ kind: "interval", everyMs });
  });

  it.each([
    ["", "The schedule is empty."],
    ["  ", "The schedule is empty."],
    ["0s", "shorter than 1 second"],
    ["PT0S", "shorter than 1 second"],
    ["1001d", "longer than 1000 days"],
    [`${"9".repeat(190)}d`, "longer than 1000 days"],
    ["1".repeat(201), "longer than 200 characters"],
    ["P1M", "whose length varies"],
    ["P1Y", "whose length varies"],
    ["P1D2M", "whose length varies"],
    ["P1Y2M3DT4H", "whose length varies"],
    ["2mo", "whose length varies"],
    ["1y", "whose length varies"],
    ["15", "neither an interval"],
    ["15M", "neither an interval"],
    ["1.5h", "neither an interval"],
    ["-5m", "neither an interval"],
    ["30m1h", "neither an interval"],
    ["1h1h", "neither an interval"],
    ["P", "neither an interval"],
    ["PT", "neither an interval"],
    ["P1DT", "neither an interval"],
    ["PT1D", "neither an interval"],
    ["hourly", "neither an interval"],
  ])("refuses %j: %s", (text, reason) => {
    expect(refusalOf(() => parseSchedule(text)).message).toContain(reason);
  });
});

describe("parseSchedule: cron", () => {
  it.each([
    ["0 3 * * *", "0 3 * * *", "UTC"],
    ["0 3 * * * Europe/Moscow", "0 3 * * *", "Europe/Moscow"],
    ["  0   3 * *\t*  Europe/Moscow ", "0 3 * * *", "Europe/Moscow"],
    ["*/15 8-18 * * MON-FRI America/Argentina/Buenos_Aires", "*/15 8-18 * * MON-FRI", "America/Argentina/Buenos_Aires"],
    ["0 0 29 2 *", "0 0 29 2 *", "UTC"],
    ["0 0 L * * Etc/GMT+3", "0 0 L * *", "Etc/GMT+3"],
    ["@hourly", "0 * * * *", "UTC"],
    ["@daily Asia/Almaty", "0 0 * * *", "Asia/Almaty"],
    ["@weekly", "0 0 * * 0", "UTC"],
  ])("R4.8 reads %j", (text, expression, timeZone) => {
    expect(parseSchedule(text)).toEqual({ kind: "cron", expression, timeZone });
  });

  it.each([
    ["0 3 * *", "five fields"],
    ["1h 30m", "five fields"],
    ["0 3 * * * Europe/Moscow now", "five fields"],
    ["@daily Europe/Moscow now", "five fields"],
    ["@reboot", "use one of @hourly"],
    ["@", "use one of @hourly"],
    ["0 0 3 * * *", "without seconds"],
    ["0 3 * * * Mars/Olympus", '"Mars/Olympus" is not a time zone'],
    ["0 3 * * * +03:00", '"+03:00" is not a time zone'],
    ["@daily +03", '"+03" is not a time zone'],
    ["12:30 * * * *", '"12:30" is not a field'],
    ["61 * * * *", "Invalid value for minute."],
    ["0 25 * * *", "Invalid value for hour."],
    ["0 0 0 * *", "Invalid value for day."],
    ["0 0 1 13 *", "Invalid value for month."],
    ["a b c d e", "cannot be read"],
    ["*/0 * * * *", "cannot be read"],
    ["0 0 30 2 *", "never matches"],
    ["0 0 31 4,6,9,11 *", "never matches"],
  ])("refuses %j: %s", (text, reason) => {
    expect(refusalOf(() => parseSchedule(text)).message).toContain(reason);
  });

  it("keeps what the cron parser said as the cause", () => {
    expect(refusalOf(() => parseSchedule("61 * * * *")).cause).toBeInstanceOf(Error);
  });
});

describe("nextRunAt: intervals", () => {
  const every15m = parseSchedule("15m");
  const at = (time: string) => new Date(`2026-01-01T${time}Z`);

  it("waits one interval when it has never run", () => {
    expect(nextRunAt(every15m, at("10:07:00"))).toEqual(at("10:22:00"));
  });

  it.each([
    ["10:00:00", "10:15:00"],
    ["10:14:59.999", "10:15:00"],
    ["10:15:00", "10:30:00"],
    ["10:15:00.001", "10:30:00"],
  ])("R4.8 keeps the beat of the last due time: after %s comes %s", (after, next) => {
    expect(nextRunAt(every15m, at(after), at("10:00:00"))).toEqual(at(next));
  });

  it("R4.8 collapses missed ticks into one", () => {
    expect(nextRunAt(every15m, at("14:52:30"), at("10:00:00"))).toEqual(at("15:00:00"));
  });

  it("does not wait for a last due time that a wrong clock put into the future", () => {
    expect(nextRunAt(every15m, at("10:07:00"), at("23:00:00"))).toEqual(at("10:15:00"));
  });
});

describe("nextRunAt: cron", () => {
  it("R4.8 is strictly after the moment asked, also in the middle of a second", () => {
    const schedule = parseSchedule("0 3 * * *");
    expect(nextRuns(schedule, "2026-01-01T02:59:59.999Z", 2)).toEqual([
      "2026-01-01T03:00:00.000Z",
      "2026-01-02T03:00:00.000Z",
    ]);
    expect(nextRuns(schedule, "2026-01-01T03:00:00.001Z", 1)).toEqual(["2026-01-02T03:00:00.000Z"]);
  });

  it("R4.8 counts in the time zone of the schedule", () => {
    expect(nextRuns(parseSchedule("0 3 * * * Europe/Moscow"), "2026-01-01T00:00:00Z", 1)).toEqual([
      "2026-01-02T00:00:00.000Z",
    ]);
  });

  it("R4.8 takes either day of month or day of week, as cron does", () => {
    expect(nextRuns(parseSchedule("0 0 13 * FRI"), "2026-01-01T00:00:00Z", 3)).toEqual([
      "2026-01-02T00:00:00.000Z",
      "2026-01-09T00:00:00.000Z",
      "2026-01-13T00:00:00.000Z",
    ]);
  });

  it("R4.8 runs once on the night when summer time begins and 02:30 does not exist", () => {
    expect(nextRuns(parseSchedule("30 2 * * * Europe/Berlin"), "2026-03-27T12:00:00Z", 3)).toEqual([
      "2026-03-28T01:30:00.000Z",
      "2026-03-29T01:00:00.000Z",
      "2026-03-30T00:30:00.000Z",
    ]);
  });

  it("R4.8 runs once on the night when summer time ends and 02:30 comes twice", () => {
    expect(nextRuns(parseSchedule("30 2 * * * Europe/Berlin"), "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30:00.000Z",
      "2026-10-26T01:30:00.000Z",
    ]);
  });

  it("R4.8 keeps an hourly beat through the night of the change", () => {
    expect(nextRuns(parseSchedule("0 * * * * Europe/Berlin"), "2026-10-24T23:30:00Z", 3)).toEqual([
      "2026-10-25T00:00:00.000Z",
      "2026-10-25T01:00:00.000Z",
      "2026-10-25T02:00:00.000Z",
    ]);
  });

  it("says so when there is no further run", () => {
    const endOfTime = new Date("3000-01-01T00:00:00Z");
    expect(refusalOf(() => nextRunAt(parseSchedule("@daily"), endOfTime)).message).toContain("no run after 3000-01-01");
  });
});
