#!/usr/bin/env bash
# no_proxy=.a.example, no_proxy=a.example, no_proxy=[2001:db8::1], no_proxy=192.0.2.0/24
#
# No RFC has this variable. curl's manual (NO_PROXY) takes a name for the host and for all below it, and addresses with
# a length since its version 7.86.
# Guess: clients agree on names and on addresses, and differ in lengths alone.
# Seen: proxy-from-env 2.1.0 (npm) goes through the proxy to what is below a.example, and with httpx 0.28.1 (Python)
# .a.example is not for a.example. httpx makes no client at all where an address of IPv6 stands in brackets or has a
# length. requests 2.34.2, httpx and aiohttp 3.14.5 (Python) know an address of IPv6 without brackets; urllib of Python
# 3.11 and proxy-from-env know it with brackets only. aiohttp does not know a.example:8080. requests alone knows
# 192.0.2.0/24.
# No value of the variable names a host of IPv6 for all of these programs, and one that suits urllib stops httpx.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install requests==2.34.2 httpx==0.28.1 aiohttp==3.14.5
npm_install proxy-from-env@2.1.0
cat >ask.py <<'PY'
import os, sys, urllib.request
from urllib.parse import urlsplit
import aiohttp.helpers, httpx, requests.utils, yarl

library, os.environ["no_proxy"], address = sys.argv[1:]
os.environ["http_proxy"] = "http://proxy.example/"

def ask_requests():
    return bool(requests.utils.get_environ_proxies(address))

def ask_urllib():
    return not urllib.request.proxy_bypass(urlsplit(address).netloc)

def ask_aiohttp():
    try:
        return bool(aiohttp.helpers.get_env_proxy_for_url(yarl.URL(address)))
    except LookupError:
        return False

def ask_httpx():
    transport = httpx.Client()._transport_for_url(httpx.URL(address))
    return type(transport._pool).__name__ == "HTTPProxy"

try:
    print("proxy" if globals()["ask_" + library]() else "direct")
except httpx.InvalidURL:
    print("no client")
PY
cat >ask.js <<'JS'
process.env.http_proxy = "http://proxy.example/";
process.env.no_proxy = process.argv[2];
console.log(require("proxy-from-env").getProxyForUrl(process.argv[3]) ? "proxy" : "direct");
JS
# row LIST ADDRESS OF_REQUESTS OF_URLLIB OF_AIOHTTP OF_HTTPX OF_PROXY_FROM_ENV
row() {
    local list=$1 address=$2 library
    shift 2
    for library in requests urllib aiohttp httpx; do
        seen "$library: $list" "$1" "$(v/bin/python ask.py $library "$list" "$address")"
        shift
    done
    seen "proxy-from-env: $list" "$1" "$(node ask.js "$list" "$address")"
}
row a.example http://a.example/ direct direct direct direct direct
row a.example http://b.a.example/ direct direct direct direct proxy
row .a.example http://a.example/ direct direct direct proxy proxy
row a.example:8080 http://a.example:8080/ direct direct proxy direct direct
row 2001:db8::1 'http://[2001:db8::1]/' direct proxy direct direct proxy
row '[2001:db8::1]' 'http://[2001:db8::1]/' proxy direct proxy 'no client' direct
row 2001:db8::/32 'http://[2001:db8::1]/' proxy proxy proxy 'no client' proxy
row 192.0.2.0/24 http://192.0.2.1/ direct proxy proxy proxy proxy
