//! A tile's web VM: nginx that serves one page, and wrk that asks for it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Namespace, Process, Rig, until};

use crate::experiment::{Desk, Need};
use crate::loads::vcpus::Vcpus;

/// As many as the simulator's `web` has for each request.
const PAGE_BYTES: usize = 6200;
const READY_LIMIT: Duration = Duration::from_secs(10);
const END_LIMIT: Duration = Duration::from_secs(30);

/// A web server that listens on port 80 of its guest.
pub(super) struct WebServer {
    server: Process,
    address: String,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Served {
    pub(super) per_s: f64,
    /// Requests without an answer, or with another than the page.
    pub(super) errors: f64,
}

impl WebServer {
    pub(super) fn needs() -> Vec<Need> {
        vec![
            Need::Program { name: "nginx", package: "nginx-light" },
            Need::Program { name: "wrk", package: "wrk" },
            Need::Program { name: "ss", package: "iproute2" },
        ]
    }

    /// Puts the page into a folder and serves it.
    pub(super) fn start(
        rig: &Rig,
        guest: &Namespace,
        address: &str,
        folder: &str,
        vcpus: &Vcpus,
    ) -> Result<Self> {
        fs::write(format!("{folder}/page"), vec![b'x'; PAGE_BYTES])?;
        let own = rig.path(&rig.unique("nginx"));
        fs::create_dir(&own)?;
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|of| format!("{of}_temp_path {own}/{of};\n"))
            .concat();
        let configuration = format!(
            "daemon off; worker_processes 1; user root; pid {own}/pid; error_log stderr;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; keepalive_requests 1000000; default_type text/html;\n\
             {temporary}server {{ listen 80; root {folder}; }} }}\n"
        );
        let file = format!("{own}/nginx.conf");
        fs::write(&file, configuration)?;
        let words = ["nginx", "-c", &file, "-p", &own];
        let mut server = guest.start(rig, "nginx", &vcpus.bound(&words))?;
        until("nginx that listens", READY_LIMIT, || {
            server.check_running()?;
            Ok(guest.run(&["ss", "-Hltn"])?.contains(":80 "))
        })?;
        Ok(Self { server, address: address.to_owned() })
    }

    /// Begins to ask for the page; what is answered is [`WebServer::finish`]'s.
    pub(super) fn ask(
        &self,
        rig: &Rig,
        from: &Namespace,
        connections: u32,
        seconds: u64,
    ) -> Result<Process> {
        let url = format!("http://{}/page", self.address);
        let (connections, duration) = (connections.to_string(), format!("{seconds}s"));
        let words = ["wrk", "--threads", "1", "--connections", &connections, "--duration"];
        from.start(rig, "wrk", &[&words[..], &[&duration, &url]].concat())
    }

    /// Waits until it has measured.
    pub(super) fn finish(
        &self,
        asking: &mut Process,
        seconds: u64,
        desk: &Desk<'_>,
    ) -> Result<Served> {
        let status =
            desk.wait_for(asking, Duration::from_secs(seconds) + END_LIMIT).context("wrk")?;
        ensure!(
            status.success(),
            "wrk ended ({status}): {}\n{}",
            asking.last_words(),
            self.server.last_words()
        );
        read(&asking.log())
    }
}

/// wrk's summary. Lines of errors are there only if there were any.
fn read(said: &str) -> Result<Served> {
    let after = |word: &str| said.lines().find_map(|line| line.trim().strip_prefix(word));
    let per_s = after("Requests/sec:").and_then(|text| text.trim().parse().ok());
    let sockets = after("Socket errors:").unwrap_or_default();
    // `connect 0, read 1, write 0, timeout 2`
    let number = |text: &str| text.rsplit(' ').next()?.parse::<f64>().ok();
    let of_sockets: f64 = sockets.split(',').filter_map(number).sum();
    let of_answers = after("Non-2xx or 3xx responses:").and_then(number).unwrap_or(0.0);
    Ok(Served {
        per_s: per_s.with_context(|| format!("wrk told no requests: {said}"))?,
        errors: of_sockets + of_answers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of wrk 4.1.0, against a server that knows one page.
    #[test]
    fn what_wrk_prints_is_read() {
        let good = include_str!("wrk-good.txt");
        assert_eq!(read(good).unwrap(), Served { per_s: 86.72, errors: 0.0 });
        let bad = include_str!("wrk-bad.txt");
        assert_eq!(read(bad).unwrap(), Served { per_s: 90.65, errors: 100.0 });
        let sockets = format!("{good}  Socket errors: connect 0, read 3, write 0, timeout 2\n");
        assert_eq!(read(&sockets).unwrap().errors, 5.0);
        let error = read("unable to connect to 10.0.0.1:80 Connection refused").unwrap_err();
        assert!(error.to_string().contains("Connection refused"), "{error}");
    }
}
