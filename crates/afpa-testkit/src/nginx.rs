//! Configurations of Debian's nginx, as an unmodified server behind what is tested.

use std::path::Path;

/// Where Debian has it.
pub const PROGRAM: &str = "/usr/sbin/nginx";

/// A configuration of a server that stays in the foreground, writes below `folder` alone, and serves `folder/www`:
/// with directives outside and inside of `http`, and of its one `server`, its `listen` among them.
pub fn configuration(folder: &Path, main: &str, http: &str, server: &str) -> String {
    let at = folder.display();
    format!(
        "daemon off; pid {at}/nginx.pid; error_log {at}/error.log; {main}
         http {{
           client_body_temp_path {at}/t1; proxy_temp_path {at}/t2;
           fastcgi_temp_path {at}/t3; uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
           sendfile on; {http}
           server {{ root {at}/www; {server} }}
         }}"
    )
}
