# Varnish as its documentation advises for content that is the same for everybody. What the cache
# lacks it asks of an origin, a reference server of the lab on the same core, which is idle once the
# cache is warm. @name@ is filled in by the lab; the parameters of varnishd are in the command.
vcl 4.1;

backend origin {
    .host = "127.0.0.1";
    .port = "8081";
}

sub vcl_recv {
    # The built-in rules do not look up requests with cookies; nothing here depends on them.
    unset req.http.Cookie;
    return (hash);
}

sub vcl_backend_response {
    # As long as a run lasts: the default of two minutes would send some requests to the origin.
    set beresp.ttl = 1h;
}

sub vcl_deliver {
    # Less header: bytes nobody needs, some of which change their length from answer to answer.
    unset resp.http.Age;
    unset resp.http.X-Varnish;
    unset resp.http.Via;
}
