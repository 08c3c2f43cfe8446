#!/usr/bin/env bash
# MThd ... XFIH ... MTrk ...
#
# MIDI Association, "Standard MIDI Files 1.0": a program should pass over chunks of kinds that it does not know (page 2), and over meta
# events of types that it does not know (page 8). A division with its first bit set, 0xE728, means frames: 0xE7 is -25, the frames of
# a second, and 0x28 is 40, the ticks of a frame (page 5).
# Guess: libraries for MIDI find the one note of such files, which sounds for 40 ticks of 25 frames by 40, so 0.04s.
# Seen: midi-file 1.2.4, @tonejs/midi 2.0.28, midi-parser-js 4.0.4 (npm) and mido 1.3.3 (Python) give an error for the chunk XFIH.
# midi-parser-js loses all notes behind a meta event of type 0x60, and finds 103 frames a second. mido finds -6360 ticks a beat, and
# @tonejs/midi NaN, so that the note has no length; mido makes it end before it begins.
# Files of sequencers, which put their own data into chunks of their own, are refused.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install midi-file@1.2.4 @tonejs/midi@2.0.28 midi-parser-js@4.0.4
pip_install mido==1.3.3
python3 - <<'PY'
def chunk(kind, data):
    return kind + len(data).to_bytes(4, "big") + data

def head(division):
    return chunk(b"MThd", bytes([0, 0, 0, 1]) + division)

beats, note, end = b"\0\x60", bytes([0, 0x90, 60, 64, 40, 0x80, 60, 64]), b"\0\xff\x2f\0"
files = {
    "plain": head(beats) + chunk(b"MTrk", note + end),
    "chunk": head(beats) + chunk(b"XFIH", b"abc") + chunk(b"MTrk", note + end),
    "meta": head(beats) + chunk(b"MTrk", b"\0\xff\x60\2ab" + note + end),
    "frames": head(b"\xe7\x28") + chunk(b"MTrk", note + end),
}
for name, data in files.items():
    open(name + ".mid", "wb").write(data)
PY
# found LIBRARY FILE: how many notes begin, and what the library says of the division, or of the end of the note
found() {
    if [[ $1 == mido ]]; then
        v/bin/python -c '
import mido, sys
try:
    file = mido.MidiFile(sys.argv[1] + ".mid")
    print(sum(event.type == "note_on" for event in file.tracks[0]), file.ticks_per_beat, round(file.length, 4))
except OSError:
    print("error")' "$2"
        return
    fi
    node -e '
        const [library, name] = process.argv.slice(1), bytes = require("fs").readFileSync(`${name}.mid`);
        const print = console.log;
        console.log = console.warn = console.error = () => {};
        const read = {
            "midi-file": () => {
                const { header, tracks } = require(library).parseMidi(bytes);
                return [tracks[0].filter((event) => event.type === "noteOn").length, header.ticksPerBeat
                    ?? `${header.framesPerSecond} ${header.ticksPerFrame}`];
            },
            "@tonejs/midi": () => {
                const notes = new (require(library).Midi)(bytes).tracks[0].notes;
                return [notes.length, notes[0].duration.toFixed(4)];
            },
            "midi-parser-js": () => {
                const file = require(library).parse(bytes);
                return [file.track[0].event.filter((event) => event.type === 9).length, ...[file.timeDivision].flat()];
            },
        };
        try {
            print(...read[library]());
        } catch {
            print("error");
        }' "$1" "$2"
}
# each FILE MIDI-FILE TONEJS MIDI-PARSER-JS MIDO
each() {
    local library file=$1
    for library in midi-file @tonejs/midi midi-parser-js mido; do
        shift
        seen "$library: $file" "$1" "$(found $library "$file")"
    done
}
each plain '1 96' '1 0.2083' '1 96' '1 96 0.2083'
each chunk error error error error
each meta '1 96' '1 0.2083' '0 96' '1 96 0.2083'
each frames '1 25 40' '1 NaN' '1 103 40' '1 -6360 -0.0031'
