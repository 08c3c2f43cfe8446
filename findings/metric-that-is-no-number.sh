#!/usr/bin/env bash
# up 1
# delay{quantile="0.5"} NaN
#
# Prometheus, "Exposition formats": a value is a number as Go's ParseFloat reads it, also NaN, +Inf and -Inf; names may have
# colons, which rules use.
# Guess: a parser of this format reads NaN, which a summary has that measured nothing, and a name with a colon.
# Seen: prom2javascript 0.2.0 (npm) fails at NaN, at -Inf, at a colon in a name and at a label that ends with a backslash, and
# gives none of the other metrics. It reads +Inf. parse-prometheus-text-format 1.1.1 (npm) reads them all.
# One summary without a measurement takes all the metrics of a program away.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install prom2javascript@0.2.0 parse-prometheus-text-format@1.1.1
cat >read.js <<'JS'
const { Readable } = require("stream");
const { getMetricsFromStream } = require("prom2javascript");
const parse = require("parse-prometheus-text-format");
const [library, line] = process.argv.slice(2);
const text = `up 1\n${line}\n`;
const names = library === "other"
    ? Promise.resolve(parse(text).map(({ name }) => name))
    : getMetricsFromStream(Readable.from([text])).then(Object.keys);
names.then((found) => console.log(found.join(" ")), () => console.log("refused"));
JS
for line in 'a NaN' 'a -Inf' 'a:b 1' 'a{b="c\\"} 1'; do
    seen "prom2javascript: $line" refused "$(node read.js prom2javascript "$line")"
    seen "...-text-format: $line" "up ${line%%[{ ]*}" "$(node read.js other "$line")"
done
seen 'prom2javascript: a +Inf' 'up a' "$(node read.js prom2javascript 'a +Inf')"
seen 'prom2javascript: a{b="c\\d"} 1' 'up a' "$(node read.js prom2javascript 'a{b="c\\d"} 1')"
