#!/usr/bin/env bash
# {+value} and {+value:3}, for the value a%20b
#
# RFC 6570, section 3.2.3: {+value} keeps sequences such as %20 in a value as they are. Sections 2.4.1 and 3.2.1:
# a prefix of some characters must not be cut within such a sequence.
# Guess: libraries for templates give a%20b, and for the prefix anything but half a sequence.
# Seen: uritemplate 0.3.4 and uri-template-lite 23.4.0 (npm) encode the value once more: a%2520b, another address.
# None of the seven that we tried gets the prefix right: url-template 3.1.1 (npm) gives a%2, which is no address, and
# uri-templates 0.2.0, @std-uritemplate/std-uritemplate 2.0.12, @hyperjump/uri-template 0.3.0 (npm), uritemplate 4.2.0
# (Python) and the two above cut first, and encode the percent sign that was left: a%252.
# Addresses that a client makes from links in answers of a server do not mean what the server meant.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install url-template@3.1.1 uri-templates@0.2.0 uri-template-lite@23.4.0 uritemplate@0.3.4 \
    @hyperjump/uri-template@0.3.0 @std-uritemplate/std-uritemplate@2.0.12
cat >expand.mjs <<'JS'
import { createRequire } from "module";
const require = createRequire(import.meta.url);
const values = { value: "a%20b" };
const libraries = {
    "url-template": async (text) => (await import("url-template")).parseTemplate(text).expand(values),
    "uri-templates": (text) => require("uri-templates")(text).fill(values),
    "uri-template-lite": (text) => require("uri-template-lite").expand(text, values),
    uritemplate: (text) => require("uritemplate").parse(text).expand(values),
    async "@hyperjump/uri-template"(text) {
        const { expand, parse } = await import("@hyperjump/uri-template");
        return expand(parse(text), values);
    },
    async "@std-uritemplate/std-uritemplate"(text) {
        return (await import("@std-uritemplate/std-uritemplate")).StdUriTemplate.expand(text, values);
    },
};
const [library, text] = process.argv.slice(2);
console.log(await libraries[library](text));
JS
both() { # LIBRARY WHOLE PREFIX
    seen "$1: {+value}" "$2" "$(node expand.mjs "$1" '{+value}')"
    seen "$1: {+value:3}" "$3" "$(node expand.mjs "$1" '{+value:3}')"
}
both url-template a%20b a%2
both uri-templates a%20b a%252
both @hyperjump/uri-template a%20b a%252
both @std-uritemplate/std-uritemplate a%20b a%252
both uritemplate a%2520b a%252
both uri-template-lite a%2520b a%252

pip_install uritemplate==4.2.0
expand() {
    v/bin/python -c 'import sys, uritemplate; print(uritemplate.expand(sys.argv[1], value="a%20b"))' "$1"
}
seen 'uritemplate (Python): {+value}' a%20b "$(expand '{+value}')"
seen 'uritemplate (Python): {+value:3}' a%252 "$(expand '{+value:3}')"
