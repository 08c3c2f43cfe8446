#!/usr/bin/env bash
# X-A: 1 and X-A: 2, in front of FastCGI
#
# RFC 3875, section 4.1.18: a server that gets several fields of one name makes one value of them; RFC 9110, section 5.3, tells
# how.
# Guess: servers that pass requests on over FastCGI send one parameter HTTP_X_A, with "1, 2".
# Seen: nginx 1.22.1, HAProxy 2.6.12 and h2o 2.2.5 send the parameter twice, nginx and HAProxy HTTP_COOKIE, too. lighttpd 1.4.69
# joins the values, and nginx does since 1.23.0, as its list of changes says. PHP-FPM 8.2 keeps the last of two parameters.
# Behind three of them a program in PHP does not see the first of two cookies, nor what a proxy before the last one wrote in
# X-Forwarded-For.
# shellcheck disable=SC2016 # PHP, with its own variables
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fastcgi_servers <<'PY'
def answer(parameters):
    return b"Content-Type: text/plain\r\n\r\n" + pairs(parameters)
PY
debian_install php8.2-fpm libapparmor1 libacl1 libxml2 libicu72 libsodium23 libargon2-1
cat >fpm.conf <<CONF
[global]
error_log = $FOLDER/fpm.log
daemonize = no
[a]
user = $(id -un)
listen = $FOLDER/fpm
pm = static
pm.max_children = 1
CONF
echo '<?php foreach ($_SERVER as $name => $value) if (is_string($value)) echo $name, "=", $value, PHP_EOL;' >a.php
root/usr/sbin/php-fpm8.2 --allow-to-run-as-root --no-php-ini --fpm-config fpm.conf 2>/dev/null &
servers+=($!)
ask() {
    curl -s --unix-socket "$1" -H 'X-A: 1' -H 'X-A: 2' -H 'Cookie: a=1' -H 'Cookie: b=2' http://a.example/ |
        grep -E "^HTTP_$2=" | cut -d = -f 2- | paste -sd '|' | sed 's/|/ | /g'
}
for server in nginx haproxy h2o; do
    seen "$server: X-A" '1 | 2' "$(ask $server X_A)"
done
seen 'lighttpd: X-A' '1, 2' "$(ask lighttpd X_A)"
for server in nginx haproxy; do
    seen "$server: Cookie" 'a=1 | b=2' "$(ask $server COOKIE)"
done
seen 'h2o: Cookie' 'a=1;b=2' "$(ask h2o COOKIE)"
seen 'lighttpd: Cookie' 'a=1; b=2' "$(ask lighttpd COOKIE)"
sed -i 's|/program;|/fpm;|' nginx.conf
kill "${servers[1]}"
wait "${servers[1]}" || true
rm -f nginx
root/usr/sbin/nginx -e nginx.log -p "$FOLDER" -c nginx.conf &
servers[1]=$!
until [[ -S nginx && -S fpm ]]; do sleep 0.05; done
seen 'nginx, PHP-FPM: X-A' 2 "$(ask nginx X_A)"
seen 'nginx, PHP-FPM: Cookie' b=2 "$(ask nginx COOKIE)"
