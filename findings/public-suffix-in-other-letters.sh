#!/usr/bin/env bash
# shishi.xn--55qx5d.cn, and example.com.
#
# publicsuffix.org, "Format": a rule may be in Unicode, and matches the name in either form, after the usual conversion; its vectors
# have shishi.xn--55qx5d.cn for a domain of its own, below the rule of that name. RFC 1034, section 3.1: a dot at the end says that
# the name is complete.
# Guess: libraries for the list find the same registered domain in all of these forms.
# Seen: tld-extract 2.1.0 (npm) gives xn--55qx5d.cn for the domain in both forms, and "com." for the domain of "example.com.".
# publicsuffix2 2.20191221 (Python) gives the suffix 公司.cn for the domain in the one form. tldjs 2.3.2 finds no domain in
# _dmarc.example.com. psl 1.15.0, tldts 7.6.0 (npm) and publicsuffixlist 1.1.2.20261023 (Python) find all.
# Statistics by domain put all sites of a country's companies into one line.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install psl@1.15.0 tldts@7.6.0 tldjs@2.3.2 tld-extract@2.1.0
pip_install publicsuffixlist==1.1.2.20261023 publicsuffix2==2.20191221
read_js() {
    node -e '
        const [library, name] = process.argv.slice(1);
        const found = require(library);
        console.log({
            psl: () => found.get(name),
            tldts: () => found.getDomain(name),
            tldjs: () => found.getDomain(name),
            "tld-extract": () => found(`http://${name}/`).domain,
        }[library]());' "$1" "$2"
}
read_python() {
    v/bin/python -c '
import importlib, sys
suffixes = importlib.import_module(sys.argv[1]).PublicSuffixList()
print(getattr(suffixes, "privatesuffix" if sys.argv[1] == "publicsuffixlist" else "get_sld")(sys.argv[2]))' "$1" "$2"
}
for name in shishi.公司.cn shishi.xn--55qx5d.cn; do
    for library in psl tldts; do
        seen "$library: $name" $name "$(read_js $library $name)"
    done
    seen "publicsuffixlist: $name" $name "$(read_python publicsuffixlist $name)"
    seen "tld-extract: $name" xn--55qx5d.cn "$(read_js tld-extract $name)"
done
seen 'publicsuffix2: shishi.xn--55qx5d.cn' shishi.xn--55qx5d.cn "$(read_python publicsuffix2 shishi.xn--55qx5d.cn)"
seen 'publicsuffix2: shishi.公司.cn' 公司.cn "$(read_python publicsuffix2 shishi.公司.cn)"
for library in psl tldts tldjs; do
    seen "$library: example.com." example.com "$(read_js $library example.com.)"
done
seen 'tld-extract: example.com.' com. "$(read_js tld-extract example.com.)"
for library in psl tldts tld-extract; do
    seen "$library: _dmarc.example.com" example.com "$(read_js $library _dmarc.example.com)"
done
seen 'tldjs: _dmarc.example.com' null "$(read_js tldjs _dmarc.example.com)"
