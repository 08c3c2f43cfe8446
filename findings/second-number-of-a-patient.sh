#!/usr/bin/env bash
# PID|1||1^^^X~2^^^Y||Doe^J\T\K
#
# HL7 2.5, section 2.5.3 and 2.7.1: a tilde stands between two values of a field, each with components of its own, so that this patient
# has the number 1 at X, and 2 at Y. \T\ is an ampersand. Segments end with CR alone.
# Guess: parsers of HL7 find two numbers, and the name "J&K".
# Seen: tiny-hl7 1.0.7 (npm) finds "X~2" for the fourth component, and "Y" for a seventh. simple-hl7 3.3.0 and hl7-standard 1.0.4 (npm)
# leave \T\ in the name, and the former gives both numbers for one. hl7-standard writes CR LF, and a bar at the end of each segment.
# hl7 0.4.5 (Python) reads all of them.
# A letter for "J&K" is addressed to "J\T\K", and the patient has no number at X.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install tiny-hl7@1.0.7 simple-hl7@3.3.0 hl7-standard@1.0.4
pip_install hl7==0.4.5
cat >read.js <<'JS'
const text = "MSH|^~\\&|A|B|C|D|20250101||ADT^A01|1|P|2.5\rPID|1||1^^^X~2^^^Y||Doe^J\\T\\K";
const read = {
    "tiny-hl7": () => {
        const segment = require("tiny-hl7").parse(text)[1];
        return [segment["PID.3.4"], segment["PID.3.7"] ?? "none", segment["PID.5.2"]];
    },
    "simple-hl7": () => {
        const segment = new (require("simple-hl7").Parser)().parse(text).getSegment("PID");
        return [segment.getField(3), "none", segment.getComponent(5, 2)];
    },
    "hl7-standard": () => {
        const message = new (require("hl7-standard"))(text);
        message.transform();
        const { data } = [message.transformed.PID ?? message.transformed].flat().find((segment) => segment.type === "PID");
        return [...data["PID.3"].map((number) => number["PID.3.4"]), data["PID.5"]["PID.5.2"]];
    },
    written: () => {
        const message = new (require("hl7-standard"))(text);
        message.transform();
        return [JSON.stringify(message.build().split("PID")[0].slice(-5))];
    },
};
console.log(...read[process.argv[2]]());
JS
seen 'hl7: where each is, and the name' 'X Y J&K' "$(v/bin/python -c '
import hl7
message = hl7.parse("MSH|^~\\&|A|B|C|D|20250101||ADT^A01|1|P|2.5\rPID|1||1^^^X~2^^^Y||Doe^J\\T\\K")
print(message["PID.F3.R1.C4"], message["PID.F3.R2.C4"], message["PID.F5.R1.C2"])')"
seen 'tiny-hl7' 'X~2 Y J&K' "$(node read.js tiny-hl7)"
seen 'simple-hl7' '1^^^X~2^^^Y none J\T\K' "$(node read.js simple-hl7)"
seen 'hl7-standard' 'X Y J\T\K' "$(node read.js hl7-standard)"
seen 'hl7-standard: the end of a segment' '".5|\r\n"' "$(node read.js written)"
