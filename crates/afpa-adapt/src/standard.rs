//! Files that come with nginx, for machines that have none.

/// The text of such a file, by the end of its path.
pub(crate) fn text(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name {
        // AFPA knows media types and parameters of FastCGI by itself.
        "mime.types" | "fastcgi_params" => Some(""),
        "fastcgi.conf" => Some("fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;"),
        "fastcgi-php.conf" => Some(
            "fastcgi_split_path_info ^(.+?\\.php)(/.*)$; try_files $fastcgi_script_name =404; \
             set $path_info $fastcgi_path_info; fastcgi_param PATH_INFO $path_info; \
             fastcgi_index index.php; \
             fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;",
        ),
        "proxy_params" => Some(
            "proxy_set_header Host $http_host; proxy_set_header X-Real-IP $remote_addr; \
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; \
             proxy_set_header X-Forwarded-Proto $scheme;",
        ),
        _ => None,
    }
}
