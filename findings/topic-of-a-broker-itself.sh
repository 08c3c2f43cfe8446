#!/usr/bin/env bash
# SUBSCRIBE #
#
# MQTT 5.0, section 4.7.2: a filter that begins with # or + does not match topics that begin with $, as those of a broker itself do.
# Section 4.7.1: + matches one level, which may be empty, so that +/+ matches /a, and # matches any number of levels.
# Guess: libraries that match topics obey both.
# Seen: mqtt-match 3.0.0, mqtt-pattern 2.1.1, mqtt-wildcard 3.0.9, mqtt-regex 1.1.0, mqtt-emitter 4.1.0 (npm) and aiomqtt 2.5.1
# (Python) match #, and +/x, with $SYS/x. mqtt-pattern and mqtt-regex do not match a/+ with a/, +/+ with /a, nor a/+/b with a//b.
# paho-mqtt 2.1.0 (Python) obeys both.
# A client that dispatches by such a library gives the figures of its broker to the code for all the other messages.
# shellcheck disable=SC2016 # $SYS is the topic
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install mqtt-match@3.0.0 mqtt-pattern@2.1.1 mqtt-wildcard@3.0.9 mqtt-regex@1.1.0 mqtt-emitter@4.1.0
pip_install aiomqtt==2.5.1 paho-mqtt==2.1.0
matches() {
    if [[ $1 == aiomqtt || $1 == paho-mqtt ]]; then
        v/bin/python -c '
import aiomqtt, sys
from paho.mqtt.client import topic_matches_sub
library, wanted, topic = sys.argv[1:]
found = aiomqtt.Topic(topic).matches(wanted) if library == "aiomqtt" else topic_matches_sub(wanted, topic)
print("yes" if found else "no")' "$@"
        return
    fi
    node -e '
        const [name, filter, topic] = process.argv.slice(1), library = require(name);
        const found = {
            "mqtt-match": () => (library.default ?? library)(filter, topic),
            "mqtt-pattern": () => library.matches(filter, topic),
            "mqtt-wildcard": () => library(topic, filter),
            "mqtt-regex": () => library(filter).regex.test(topic),
            "mqtt-emitter": () => {
                const emitter = new library();
                let called = false;
                emitter.on(filter, () => (called = true));
                emitter.emit(topic, "");
                return called;
            },
        }[name]();
        console.log(found ? "yes" : "no");' "$1" "$2" "$3"
}
ALL=(mqtt-match mqtt-pattern mqtt-wildcard mqtt-regex mqtt-emitter aiomqtt)
for library in paho-mqtt "${ALL[@]}"; do
    seen "$library: a/#, of a/x" yes "$(matches "$library" 'a/#' a/x)"
done
seen 'paho-mqtt: #, of $SYS/x' no "$(matches paho-mqtt '#' '$SYS/x')"
seen 'paho-mqtt: +/x, of $SYS/x' no "$(matches paho-mqtt '+/x' '$SYS/x')"
for library in "${ALL[@]}"; do
    seen "$library: #, of \$SYS/x" yes "$(matches "$library" '#' '$SYS/x')"
    seen "$library: +/x, of \$SYS/x" yes "$(matches "$library" '+/x' '$SYS/x')"
done
while read -r filter topic; do
    for library in paho-mqtt aiomqtt mqtt-match mqtt-wildcard mqtt-emitter; do
        seen "$library: $filter, of $topic" yes "$(matches $library "$filter" "$topic")"
    done
    for library in mqtt-pattern mqtt-regex; do
        seen "$library: $filter, of $topic" no "$(matches $library "$filter" "$topic")"
    done
done <<'TOPICS'
a/+ a/
+/+ /a
a/+/b a//b
TOPICS
