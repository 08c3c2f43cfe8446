#!/usr/bin/env bash
# /größe{?empty}, for an empty list
#
# RFC 6570, section 3.1: a character of the template itself that an address may not have is encoded as UTF-8 with
# percent signs. Section 2.3: a list without members counts as undefined, and section 3.2.1 passes over it, with its
# name.
# Guess: libraries for templates give /gr%C3%B6%C3%9Fe.
# Seen: uri-templates 0.2.0, uri-template-lite 23.4.0 (npm) and uritemplate 4.2.0 (Python) leave ö and ß as they are.
# url-template 3.1.1 and uritemplate 0.3.4 (npm) encode them, and add ?empty= for the list. Only
# @hyperjump/uri-template 0.3.0 and @std-uritemplate/std-uritemplate 2.0.12 (npm) do both.
# Some servers and caches take the bytes of ö and its encoded form for two addresses, and some refuse the first.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install url-template@3.1.1 uri-templates@0.2.0 uri-template-lite@23.4.0 uritemplate@0.3.4 \
    @hyperjump/uri-template@0.3.0 @std-uritemplate/std-uritemplate@2.0.12
cat >expand.mjs <<'JS'
import { createRequire } from "module";
const require = createRequire(import.meta.url);
const text = "/größe{?empty}";
const values = { empty: [] };
const libraries = {
    "url-template": async () => (await import("url-template")).parseTemplate(text).expand(values),
    "uri-templates": () => require("uri-templates")(text).fill(values),
    "uri-template-lite": () => require("uri-template-lite").expand(text, values),
    uritemplate: () => require("uritemplate").parse(text).expand(values),
    async "@hyperjump/uri-template"() {
        const { expand, parse } = await import("@hyperjump/uri-template");
        return expand(parse(text), values);
    },
    async "@std-uritemplate/std-uritemplate"() {
        return (await import("@std-uritemplate/std-uritemplate")).StdUriTemplate.expand(text, values);
    },
};
console.log(await libraries[process.argv[2]]());
JS
seen 'uri-templates' '/größe' "$(node expand.mjs uri-templates)"
seen 'uri-template-lite' '/größe' "$(node expand.mjs uri-template-lite)"
seen 'url-template' '/gr%C3%B6%C3%9Fe?empty=' "$(node expand.mjs url-template)"
seen 'uritemplate' '/gr%C3%B6%C3%9Fe?empty=' "$(node expand.mjs uritemplate)"
seen '@hyperjump/uri-template' '/gr%C3%B6%C3%9Fe' "$(node expand.mjs @hyperjump/uri-template)"
seen '@std-uritemplate/std-uritemplate' '/gr%C3%B6%C3%9Fe' "$(node expand.mjs @std-uritemplate/std-uritemplate)"

pip_install uritemplate==4.2.0
seen 'uritemplate (Python)' '/größe' "$(v/bin/python -X utf8 -c '
import uritemplate
print(uritemplate.expand("/größe{?empty}", empty=[]))')"
