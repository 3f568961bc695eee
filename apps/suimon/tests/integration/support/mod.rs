//! Runs the program with a fake daemon that returns fixed bytes for each path.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

const OPERATION: &str = r#"{"id":7,"kind":"apply","subject":"host","state":"STATE","steps_done":0,"steps":1,"started_unix_ms":1,"plan":{"steps":[{"action":"create","resource":"nic/web"}]}EXTRA}"#;

pub fn operation(state: &str, extra: &str) -> String {
    OPERATION.replace("STATE", state).replace("EXTRA", extra)
}

/// Fake daemon. For a request line with one of the prefixes it returns the bytes assigned to this
/// prefix.
pub struct Daemon {
    pub dir: TempDir,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    pub fn new(answers: &[(&str, String)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answers: Vec<(String, String)> =
            answers.iter().map(|(start, answer)| ((*start).to_owned(), answer.clone())).collect();
        let log = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &answers, &log);
            }
        });
        Self { dir, requests }
    }

    pub fn run(&self, args: &[&str]) -> Output {
        suimon(&[&["--socket", self.socket().to_str().unwrap()], args].concat(), b"")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(stream: UnixStream, answers: &[(String, String)], log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    log.lock().unwrap().push(format!("{} {}", first.trim(), String::from_utf8_lossy(&body)));
    let answer = answers.iter().find(|(start, _)| first.starts_with(start.as_str()));
    let answer = answer.map_or_else(|| json("404 Not Found", "{}"), |(_, answer)| answer.clone());
    let mut stream = stream;
    let _ = stream.write_all(answer.as_bytes());
    // A streaming response with `WAIT` keeps the connection open until the client closes it.
    if answer.ends_with("WAIT") {
        thread::spawn(move || stream.read(&mut [0]));
    }
}

pub fn json(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub fn lines(lines: &[String]) -> String {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}")
}

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suimon"));
    command.args(args).env_remove("SUIMON_SOCKET").env_remove("SUIMON_NODE");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn suimon(args: &[&str], input: &[u8]) -> Output {
    let mut child = command(args).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// Returns exit code, standard output and standard error.
pub fn outcome(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}
