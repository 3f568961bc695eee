//! A disk served by another process, which can be killed and restarted.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::time::Duration;

use suimon_rig::{Guest, GuestDisk, GuestSpec, Process, Rig, wait_for_value, wait_until};

/// Path of the program that serves disks.
const SERVE: &str = env!("CARGO_BIN_EXE_serve-disk");

/// Path of the program that verifies disks in a guest.
pub const VERIFY: &str = env!("CARGO_BIN_EXE_verify-disk");

pub const MIB: u64 = 1 << 20;

/// A disk over vhost-user and the process that serves it.
pub struct ServedDisk {
    name: String,
    arguments: Vec<String>,
    process: Process,
    stdin: Option<ChildStdin>,
    pub file: PathBuf,
    pub socket: PathBuf,
}

impl ServedDisk {
    /// Serves a new raw file of `bytes` bytes.
    pub fn raw(rig: &Rig, name: &str, bytes: u64, options: &str) -> Self {
        let file = rig.file(&format!("{name}.raw"));
        std::fs::File::create(&file).unwrap().set_len(bytes).unwrap();
        Self::start(rig, name, &file, options)
    }

    /// Serves an existing file.
    pub fn start(rig: &Rig, name: &str, file: &Path, options: &str) -> Self {
        let socket = rig.file(&format!("{name}.sock"));
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut arguments = vec![SERVE.to_owned(), text(file)];
        arguments.extend(["--vhost-user".to_owned(), text(&socket)]);
        arguments.extend(["--state".to_owned(), rig.path(&format!("{name}.state"))]);
        arguments.extend(options.split_whitespace().map(str::to_owned));
        let process = Process::start(rig, name, &arguments).unwrap();
        let mut disk = Self {
            name: name.to_owned(),
            arguments,
            process,
            stdin: None,
            file: file.to_owned(),
            socket,
        };
        disk.wait_serving();
        disk
    }

    fn wait_serving(&mut self) {
        wait_until("disk that is served", Duration::from_secs(120), || {
            self.process.check_running()?;
            Ok(self.process.log().contains("serving "))
        })
        .unwrap();
    }

    /// Returns the disk as a guest disk with one queue.
    pub fn disk(&self, properties: &str) -> GuestDisk {
        let mut disk = GuestDisk::new(self.socket.to_str().unwrap());
        disk.properties = properties.to_owned();
        disk
    }

    /// Kills the process and starts a new one.
    pub fn kill_and_restart(&mut self, rig: &Rig) {
        self.process.kill();
        self.stdin = None;
        self.process = Process::start(rig, &self.name, &self.arguments).unwrap();
        self.wait_serving();
    }

    /// Writes a line to the process, waits for an output line that contains `answer`, and returns
    /// the text after it.
    pub fn ask(&mut self, line: &str, answer: &str) -> String {
        let before = self.process.log().len();
        if self.stdin.is_none() {
            self.stdin = self.process.take_stdin();
        }
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
        wait_for_value("answer", Duration::from_secs(120), || {
            let log = self.process.log();
            let line_rest = log[before..].lines().find_map(|line| line.strip_prefix(answer));
            Ok(line_rest.map(str::to_owned))
        })
        .unwrap()
    }

    /// Returns the output of the current process.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Ends the process normally, after which all writes are in the file; returns the path of the
    /// file.
    pub fn close(mut self) -> PathBuf {
        drop((self.stdin.take(), self.process.take_stdin()));
        assert!(self.process.wait(Duration::from_secs(120)).unwrap().success());
        self.file.clone()
    }
}

/// Starts a guest with these disks, the verification program and further programs.
pub fn guest(rig: &Rig, disks: Vec<GuestDisk>, programs: &[&str]) -> Guest {
    let spec = GuestSpec {
        name: "vm".to_owned(),
        disks,
        programs: tools(programs),
        cpus: 2,
        ..GuestSpec::default()
    };
    Guest::start(rig, &spec).unwrap()
}

/// Returns the paths of programs of the host and of the verification program.
pub fn tools(names: &[&str]) -> Vec<PathBuf> {
    let find = |name: &&str| {
        let folders = ["/usr/bin", "/usr/sbin", "/sbin", "/bin"];
        let mut paths = folders.iter().map(|folder| Path::new(folder).join(name));
        paths.find(|path| path.is_file()).unwrap_or_else(|| panic!("{name} is not installed"))
    };
    names.iter().map(find).chain([PathBuf::from(VERIFY)]).collect()
}

/// Returns the number of bytes that a file occupies on the host.
pub fn allocated(file: &Path) -> u64 {
    std::fs::metadata(file).unwrap().blocks() * 512
}
