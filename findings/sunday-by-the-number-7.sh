#!/usr/bin/env bash
# 0 0 * * 7
#
# crontab(5): the day of the week is 0 to 7, and both ends are Sunday. POSIX has 0 to 6, with Sunday first.
# Guess: libraries for such lines take 7 for Sunday, or refuse it, and none has another 0.
# Seen: pycron 3.3.0 (Python) never runs it, and 6-7 on Saturdays alone. @breejs/later 4.2.0 (npm) runs it on Saturdays.
# APScheduler 3.11.3 (Python) refuses it, and takes 0 for Monday. cron-parser 5.10.6, croner 11.0.1, cron 4.4.0 (npm), croniter
# 7.0.0 and crontab 1.0.5 (Python) take it for Sunday.
# A line that a crontab has obeyed for years is at rest, or a day early, in a program that took it over.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install cron-parser@5.10.6 croner@11.0.1 cron@4.4.0 @breejs/later@4.2.0
pip_install pycron==3.3.0 APScheduler==3.11.3 croniter==7.0.0 crontab==1.0.5
export TZ=UTC
# Each prints the days of the next two runs behind Thursday, 1 January 2026.
days_js() {
    node -e '
        const [library, line] = process.argv.slice(1);
        const found = require(library), begin = new Date("2026-01-01T00:00:00Z");
        const next = {
            "cron-parser": () => {
                const dates = found.CronExpressionParser.parse(line, { currentDate: begin, tz: "UTC" });
                return [dates.next().toDate(), dates.next().toDate()];
            },
            croner: () => new found.Cron(line, { timezone: "UTC" }).nextRuns(2, begin),
            cron: () => {
                const time = new found.CronTime(line, "UTC");
                const first = time.getNextDateFrom(begin, "UTC").toJSDate();
                return [first, time.getNextDateFrom(first, "UTC").toJSDate()];
            },
            "@breejs/later": () => found.schedule(found.parse.cron(line)).next(2, begin),
        }[library]();
        console.log(...next.map(date => date.toUTCString().slice(0, 3)));' "$1" "$2"
}
days_python() {
    v/bin/python -c '
import datetime, sys
library, line = sys.argv[1:]
begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
def next_run(after):
    if library == "croniter":
        import croniter
        return croniter.croniter(line, after).get_next(datetime.datetime)
    if library == "crontab":
        import crontab
        return after + datetime.timedelta(seconds=crontab.CronTab(line).next(after, default_utc=True))
    if library == "APScheduler":
        from apscheduler.triggers.cron import CronTrigger
        return CronTrigger.from_crontab(line, timezone="UTC").get_next_fire_time(None, after + datetime.timedelta(seconds=1))
    import pycron
    return next(date for day in range(1, 400) if pycron.is_now(line, date := after + datetime.timedelta(days=day)))
try:
    first = next_run(begin)
    print(f"{first:%a} {next_run(first):%a}")
except ValueError:
    print("refused")
except StopIteration:
    print("never")' "$1" "$2"
}
for library in cron-parser croner cron; do
    seen "$library: 7" 'Sun Sun' "$(days_js $library '0 0 * * 7')"
    seen "$library: 0" 'Sun Sun' "$(days_js $library '0 0 * * 0')"
done
for library in croniter crontab; do
    seen "$library: 7" 'Sun Sun' "$(days_python $library '0 0 * * 7')"
    seen "$library: 0" 'Sun Sun' "$(days_python $library '0 0 * * 0')"
done
seen '@breejs/later: 0' 'Sun Sun' "$(days_js @breejs/later '0 0 * * 0')"
seen '@breejs/later: 7' 'Sat Sat' "$(days_js @breejs/later '0 0 * * 7')"
seen 'pycron: 0' 'Sun Sun' "$(days_python pycron '0 0 * * 0')"
seen 'pycron: 7' never "$(days_python pycron '0 0 * * 7')"
seen 'pycron: 6-7' 'Sat Sat' "$(days_python pycron '0 0 * * 6-7')"
seen 'APScheduler: 7' refused "$(days_python APScheduler '0 0 * * 7')"
seen 'APScheduler: 0' 'Mon Mon' "$(days_python APScheduler '0 0 * * 0')"
