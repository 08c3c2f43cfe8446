#!/usr/bin/env bash
# WEBVTT
#
# 00:01.000	-->	00:02.000
# Hi
#
# WebVTT, section 4.1: blanks or tabs stand beside the arrow and before the settings; lines end with CR LF, LF or CR; the file may
# begin with a byte order mark.
# Guess: libraries for WebVTT read this as they read blanks.
# Seen: node-webvtt 2.0.0 (npm) gives no cue, and no error unless it is strict. @plussub/srt-vtt-parser 2.0.5 (npm) reads it, and gives
# a cue with "align:start" behind its time no end. It leaves the CR of CR LF in a text, finds no cue between lines that end with CR,
# and fails at a byte order mark.
# webvtt-parser 2.2.0 (npm) and webvtt-py 0.6.0 (Python) read all.
# Subtitles are not there, and nothing says so.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install node-webvtt@2.0.0 webvtt-parser@2.2.0 @plussub/srt-vtt-parser@2.0.5
pip_install webvtt-py==0.6.0
printf 'WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n' >blanks.vtt
printf 'WEBVTT\n\n00:01.000 --> 00:02.000 align:start\nHi\n' >setting.vtt
printf 'WEBVTT\n\n00:01.000\t-->\t00:02.000\nHi\n' >tabs.vtt
printf 'WEBVTT\r\n\r\n00:01.000 --> 00:02.000\r\nHi\r\n' >crlf.vtt
printf 'WEBVTT\r\r00:01.000 --> 00:02.000\rHi\r' >cr.vtt
printf '\xef\xbb\xbfWEBVTT\n\n00:01.000 --> 00:02.000\nHi\n' >mark.vtt
read_js() {
    node -e '
        const [library, name] = process.argv.slice(1);
        const found = require(library), text = require("fs").readFileSync(name + ".vtt", "utf8");
        const cues = {
            "node-webvtt": () => found.parse(text, { strict: false }).cues.map(cue => [cue.start, cue.end, cue.text]),
            "webvtt-parser": () =>
                new found.WebVTTParser().parse(text).cues.map(cue => [cue.startTime, cue.endTime, cue.text]),
            "@plussub/srt-vtt-parser": () =>
                found.parse(text).entries.map(cue => [cue.from / 1000, cue.to && cue.to / 1000, cue.text]),
        }[library];
        try {
            console.log(JSON.stringify(cues()));
        } catch {
            console.log("error");
        }' "$1" "$2"
}
read_python() {
    v/bin/python -c '
import json, sys, webvtt
print(json.dumps([[cue.start_in_seconds, cue.end_in_seconds, cue.text] for cue in webvtt.read(sys.argv[1] + ".vtt")],
                 separators=(",", ":")))' "$1"
}
ONE='[[1,2,"Hi"]]'
for name in blanks setting tabs crlf cr mark; do
    seen "webvtt-parser: $name" "$ONE" "$(read_js webvtt-parser $name)"
    seen "webvtt-py: $name" "$ONE" "$(read_python $name)"
done
for name in blanks setting crlf cr mark; do
    seen "node-webvtt: $name" "$ONE" "$(read_js node-webvtt $name)"
done
seen 'node-webvtt: tabs' '[]' "$(read_js node-webvtt tabs)"
seen '@plussub/srt-vtt-parser: blanks' "$ONE" "$(read_js @plussub/srt-vtt-parser blanks)"
seen '@plussub/srt-vtt-parser: tabs' "$ONE" "$(read_js @plussub/srt-vtt-parser tabs)"
seen '@plussub/srt-vtt-parser: setting' '[[1,null,"Hi"]]' "$(read_js @plussub/srt-vtt-parser setting)"
seen '@plussub/srt-vtt-parser: crlf' '[[1,2,"Hi\r"]]' "$(read_js @plussub/srt-vtt-parser crlf)"
seen '@plussub/srt-vtt-parser: cr' '[]' "$(read_js @plussub/srt-vtt-parser cr)"
seen '@plussub/srt-vtt-parser: mark' error "$(read_js @plussub/srt-vtt-parser mark)"
