//! Web VM: nginx with CGI in a guest, and external load by wrk with one of two profiles.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use suimon_rig::{Namespace, Process, Rig, run, system_program, wait_until};

use super::vcpus::Vcpus;
use crate::requirement::{Requirement, programs};

/// Number of processes of a CGI server.
const CGI_WORKERS: &str = "4";
/// Requests per HTTPS connection before it is reopened with a handshake.
const HTTPS_REQUESTS: u32 = 20;
const START_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for wrk to exit after its nominal end.
const END_LIMIT: Duration = Duration::from_secs(15);
/// Time limit of a response.
const RESPONSE_TIMEOUT: &str = "10s";

/// Shares of requests that start a CGI program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    /// Percentage of HTTP requests that start a CGI program.
    pub(crate) http_cgi_percent: u32,
    /// Percentage of HTTPS requests that start a CGI program.
    pub(crate) https_cgi_percent: u32,
}

impl Profile {
    /// STD-CGI profile of WebBench.
    pub(crate) const STD_CGI: Self = Self { http_cgi_percent: 16, https_cgi_percent: 2 };
    /// STD-CGI profile without CGI over HTTP.
    pub(crate) const MIN_CGI: Self = Self { http_cgi_percent: 0, https_cgi_percent: 2 };
}

/// Returns the programs needed by server and clients.
pub(crate) fn requirements() -> Vec<Requirement> {
    programs(&[
        ("nginx", "nginx-light"),
        ("fcgiwrap", "fcgiwrap"),
        ("wrk", "wrk"),
        ("openssl", "openssl"),
        ("curl", "curl"),
        ("taskset", "util-linux"),
    ])
}

/// Server of a web VM. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct WebServer {
    _nginx: Process,
    _cgi: Process,
}

impl WebServer {
    /// Starts nginx on ports 80 and 443 with a file of `file_bytes` bytes and a CGI program on the
    /// CPUs of one guest, and waits until it listens.
    ///
    /// # Errors
    /// A program is missing or does not start; the error contains its output.
    pub(crate) fn start(
        rig: &Rig,
        namespace: &Namespace,
        vcpus: &Vcpus,
        file_bytes: usize,
    ) -> Result<Self> {
        let name = rig.unique("web");
        let folder = rig.path(&name);
        fs::create_dir_all(format!("{folder}/www"))?;
        fs::write(format!("{folder}/www/file"), "w".repeat(file_bytes))?;
        let program = format!("{folder}/program.cgi");
        fs::write(&program, cgi_program(file_bytes))?;
        run(&["chmod", "755", &program])?;
        make_certificate(&folder)?;
        let file = format!("{folder}/nginx.conf");
        fs::write(&file, configuration(&folder))?;
        let socket = format!("unix:{folder}/cgi.sock");
        let command = vcpus.pinned_command(&["fcgiwrap", "-c", CGI_WORKERS, "-s", &socket]);
        let mut cgi = namespace.start(rig, "fcgiwrap", &command)?;
        let command = vcpus.pinned_command(&["nginx", "-c", &file, "-p", &folder]);
        let mut nginx = namespace.start(rig, "nginx", &command)?;
        wait_until("listening nginx", START_LIMIT, || {
            nginx.check_running()?;
            cgi.check_running()?;
            let sockets = namespace.run(&["ss", "-Hltn"])?;
            Ok(sockets.contains(":80 ") && sockets.contains(":443 "))
        })?;
        Ok(Self { _nginx: nginx, _cgi: cgi })
    }
}

/// The two wrk processes that load one web VM.
#[derive(Debug)]
pub(crate) struct WebClients {
    http: Process,
    https: Process,
}

/// Number of concurrent connections to one web VM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connections {
    pub(crate) http: u32,
    pub(crate) https: u32,
}

/// Requests served under the load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WebResult {
    pub(crate) requests: f64,
    pub(crate) requests_per_s: f64,
    /// Number of requests over HTTPS.
    pub(crate) https_requests: f64,
    /// Number of requests handled by a CGI program.
    pub(crate) cgi_requests: f64,
    /// Responses other than 2xx, and missing responses.
    pub(crate) errors: f64,
    /// 99th percentile of the latency in ms: the higher one of HTTP and HTTPS.
    pub(crate) p99_ms: f64,
}

/// Values that the script in wrk prints at its end.
#[derive(Clone, Debug, Deserialize)]
struct ScriptOutput {
    requests: f64,
    cgi: f64,
    us: f64,
    errors: f64,
    p99_us: f64,
}

impl WebClients {
    /// Checks one request of each kind, then starts the load for the given number of seconds.
    ///
    /// # Errors
    /// The server's response is wrong; the error contains it.
    pub(crate) fn start(
        rig: &Rig,
        from: &Namespace,
        to: &str,
        profile: Profile,
        connections: Connections,
        seconds: u64,
    ) -> Result<Self> {
        for url in [format!("http://{to}/file"), format!("https://{to}/cgi")] {
            from.run(&["curl", "-sSfk", "--max-time", "10", "-o", "/dev/null", &url])?;
        }
        let begin = |scheme: &str, cgi_percent: u32, connections: u32| {
            let script = rig.path(&format!("{}.lua", rig.unique("wrk")));
            fs::write(&script, SCRIPT.replace("PERCENT", &cgi_percent.to_string()))?;
            let (url, time) = (format!("{scheme}://{to}/file"), format!("{seconds}s"));
            let count = connections.to_string();
            let command =
                ["wrk", "-t", "1", "-c", &count, "-d", &time, "--timeout", RESPONSE_TIMEOUT];
            let command = [&command[..], &["--script", &script, &url]].concat();
            from.start(rig, "wrk", &command)
        };
        Ok(Self {
            http: begin("http", profile.http_cgi_percent, connections.http)?,
            https: begin("https", profile.https_cgi_percent, connections.https)?,
        })
    }

    /// Waits for the end of both processes.
    ///
    /// # Errors
    /// A process does not exit, or printed no result.
    pub(crate) fn end(mut self) -> Result<WebResult> {
        let [http, https] = [&mut self.http, &mut self.https].map(|wrk_run| {
            wrk_run.wait(END_LIMIT)?;
            parse_output(&wrk_run.log())
        });
        let (http, https) =
            (http.context("wrk over HTTP failed")?, https.context("wrk over HTTPS failed")?);
        Ok(WebResult::combine(&http, &https))
    }
}

impl WebResult {
    fn combine(http: &ScriptOutput, https: &ScriptOutput) -> Self {
        let rate =
            |script_output: &ScriptOutput| script_output.requests * 1e6 / script_output.us.max(1.0);
        Self {
            requests: http.requests + https.requests,
            requests_per_s: rate(http) + rate(https),
            https_requests: https.requests,
            cgi_requests: http.cgi + https.cgi,
            errors: http.errors + https.errors,
            p99_ms: http.p99_us.max(https.p99_us) / 1e3,
        }
    }
}

/// Parses the last output of wrk.
fn parse_output(log: &str) -> Result<ScriptOutput> {
    let line = log.lines().rev().find(|line| line.starts_with('{'));
    let line = line.with_context(|| format!("wrk printed no result: {}", log.trim()))?;
    let script_output: ScriptOutput = serde_json::from_str(line)
        .with_context(|| format!("the result of wrk is invalid: {line}"))?;
    ensure!(script_output.requests > 0.0, "wrk received no response: {}", log.trim());
    Ok(script_output)
}

/// Returns a shell script whose response has the size of the file.
fn cgi_program(bytes: usize) -> String {
    let body = "c".repeat(bytes);
    format!("#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\necho {body}\n")
}

fn make_certificate(folder: &str) -> Result<()> {
    let openssl = system_program("openssl")?.display().to_string();
    let (key, certificate) = (format!("{folder}/key.pem"), format!("{folder}/certificate.pem"));
    let command = [&openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    let command =
        [&command[..], &["-subj", "/CN=web", "-keyout", &key, "-out", &certificate]].concat();
    run(&command).map(drop)
}

fn configuration(folder: &str) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|directory| format!("{directory}_temp_path {folder}/{directory};\n"))
        .collect();
    let program = format!(
        "location = /cgi {{ fastcgi_pass unix:{folder}/cgi.sock;\n\
         fastcgi_param SCRIPT_FILENAME {folder}/program.cgi;\n\
         fastcgi_param REQUEST_METHOD $request_method; }}"
    );
    format!(
        "daemon off; worker_processes 1; user root; pid {folder}/pid; error_log stderr;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; sendfile on; default_type application/octet-stream;\n\
         {temporary}\
         root {folder}/www; ssl_certificate {folder}/certificate.pem;\n\
         ssl_certificate_key {folder}/key.pem;\n\
         server {{ listen 80; keepalive_requests 100000; {program} }}\n\
         server {{ listen 443 ssl; keepalive_requests {HTTPS_REQUESTS}; {program} }} }}\n"
    )
}

/// Script of wrk. Evenly distributed requests start a CGI program; the result is one line of JSON.
const SCRIPT: &str = r#"local threads = {}
function setup(thread) table.insert(threads, thread) end
asked, cgi = 0, 0
function request()
  asked = asked + 1
  if (asked * PERCENT) % 100 < PERCENT then
    cgi = cgi + 1
    return wrk.format("GET", "/cgi")
  end
  return wrk.format("GET", "/file")
end
function done(summary, latency, requests)
  local programs = 0
  for _, thread in ipairs(threads) do programs = programs + thread:get("cgi") end
  local of = summary.errors
  local errors = of.connect + of.read + of.write + of.status + of.timeout
  print(string.format('{"requests":%d,"cgi":%d,"us":%d,"errors":%d,"p99_us":%d}',
    summary.requests, programs, summary.duration, errors, latency:percentile(99)))
end
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_wrk_are_summed_over_http_and_https() {
        let log = "Running 2s test @ http://10.77.0.10/file\n  1 threads and 8 connections\n\
                   Requests/sec:   5000.00\n\
                   {\"requests\":10000,\"cgi\":1600,\"us\":2000000,\"errors\":1,\"p99_us\":2500}\n";
        let http = parse_output(log).unwrap();
        let https =
            ScriptOutput { requests: 500.0, cgi: 10.0, us: 2.5e6, errors: 0.0, p99_us: 9000.0 };
        let summary = WebResult::combine(&http, &https);
        assert!((summary.requests_per_s - 5200.0).abs() < 1e-6, "{summary:?}");
        assert!(
            (summary.cgi_requests - 1610.0).abs() < 1e-6 && summary.errors > 0.5,
            "{summary:?}"
        );
        assert!((summary.p99_ms - 9.0).abs() < 1e-9 && summary.https_requests > 499.0);
    }

    #[test]
    fn the_output_of_a_failed_wrk_is_quoted() {
        let error =
            parse_output("unable to connect to 10.77.0.10:80 Connection refused\n").unwrap_err();
        assert!(format!("{error:#}").contains("Connection refused"), "{error:#}");
        let nothing = "{\"requests\":0,\"cgi\":0,\"us\":1,\"errors\":9,\"p99_us\":0}";
        assert!(parse_output(nothing).is_err());
    }
}
