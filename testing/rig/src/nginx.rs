//! nginx in a namespace, serving one large file.

use std::fs::{self, File};
use std::time::Duration;

use anyhow::Result;

use crate::namespace::Namespace;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::wait_until;

/// Starts nginx on port 80; `/file` is `bytes` long and sparse.
///
/// # Errors
/// It does not listen.
pub fn serve(rig: &Rig, namespace: &Namespace, bytes: u64) -> Result<Process> {
    let name = rig.unique("nginx");
    let folder = rig.file(&name);
    fs::create_dir_all(folder.join("www"))?;
    File::create(folder.join("www/file"))?.set_len(bytes)?;
    fs::write(folder.join("www/index.html"), "Hello through the switch.\n")?;
    let path_text = folder.display();
    let configuration = format!(
        "daemon off; worker_processes 1; user root; pid {path_text}/pid; error_log stderr;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; sendfile on; default_type application/octet-stream;\n\
         client_body_temp_path {path_text}/body; proxy_temp_path {path_text}/proxy;\n\
         fastcgi_temp_path {path_text}/fastcgi; uwsgi_temp_path {path_text}/uwsgi;\n\
         scgi_temp_path {path_text}/scgi;\n\
         server {{ listen 80; listen [::]:80; root {path_text}/www; }} }}\n"
    );
    let file = rig.path(&format!("{name}/nginx.conf"));
    fs::write(&file, configuration)?;
    let mut server =
        namespace.start(rig, "nginx", &["nginx", "-c", &file, "-p", &rig.path(&name)])?;
    wait_until("listening nginx", Duration::from_secs(60), || {
        server.check_running()?;
        Ok(namespace.run(&["ss", "-ltn"])?.contains(":80 "))
    })?;
    Ok(server)
}
