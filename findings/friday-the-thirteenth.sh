#!/usr/bin/env bash
# 0 0 13 * 5
#
# crontab(5) of Debian's cron, and POSIX: where both the day of the month and the day of the week are restricted, the
# command runs on the days that match either.
# Guess: a library that reads crontab lines gives every Friday and every 13th.
# Seen: cron-converter 2.1.0 (npm) gives the Fridays that are the 13th alone: three in 2026. cron-parser 5.10.6,
# croner 11.0.1 (npm) and croniter 7.0.0 (Python) give either.
# A task that should run each week waits for months.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install cron-converter@2.1.0 cron-parser@5.10.6 croner@11.0.1
cat >days.mjs <<'JS'
import { getSchedule, stringToArray } from "cron-converter";
import { CronExpressionParser } from "cron-parser";
import { Cron } from "croner";
const [library, line] = process.argv.slice(2);
const from = new Date("2026-01-01T12:00:00Z");
const four = (next) => Array.from({ length: 4 }, next);
const days = {
    "cron-converter"() {
        const schedule = getSchedule(stringToArray(line), from, "UTC");
        return four(() => schedule.next().toJSDate());
    },
    "cron-parser"() {
        const schedule = CronExpressionParser.parse(line, { currentDate: from, tz: "UTC" });
        return four(() => schedule.next().toDate());
    },
    croner: () => new Cron(line, { timezone: "UTC", paused: true }).nextRuns(4, from),
}[library]();
console.log(...days.map((day) => day.toISOString().slice(5, 10)));
JS
seen 'cron-converter' '02-13 03-13 11-13 08-13' "$(node days.mjs cron-converter '0 0 13 * 5')"
seen 'cron-converter: 0 0 13 * *' '01-13 02-13 03-13 04-13' "$(node days.mjs cron-converter '0 0 13 * *')"
seen 'cron-parser' '01-02 01-09 01-13 01-16' "$(node days.mjs cron-parser '0 0 13 * 5')"
seen 'croner' '01-02 01-09 01-13 01-16' "$(node days.mjs croner '0 0 13 * 5')"

pip_install croniter==7.0.0
seen 'croniter' '01-02 01-09 01-13 01-16' "$(v/bin/python -c '
import croniter, datetime
times = croniter.croniter("0 0 13 * 5", datetime.datetime(2026, 1, 1, 12))
print(*(times.get_next(datetime.datetime).strftime("%m-%d") for _ in range(4)))')"
