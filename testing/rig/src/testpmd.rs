//! DPDK's testpmd with two virtio-user ports, which the switch sees as the NICs of two VMs.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ChildStdin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::hugepages::Hugepages;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{wait_for_value, wait_until};

/// Deadline for its start and its output.
const LIMIT: Duration = Duration::from_secs(60);
/// Huge pages of 2 MiB that one testpmd uses.
const PAGES: u64 = 256;

/// Parameters of a testpmd.
#[derive(Clone, Debug)]
pub struct TestpmdSpec {
    /// Sockets of its two ports.
    pub sockets: [String; 2],
    /// MAC addresses of the ports.
    pub macs: [String; 2],
    /// True if it listens and the switch connects.
    pub listens: bool,
    /// Queue pairs of each port.
    pub queues: u16,
    /// CPU of its command line, and CPU of its forwarding thread.
    pub cpus: [u16; 2],
    /// Forwarding mode: `mac`, `io`, `rxonly`, `txonly`, `flowgen`, …
    pub mode: String,
    /// Additional arguments of testpmd.
    pub extra: Vec<String>,
    /// Additional arguments of each port's device.
    pub device_extra: String,
}

impl TestpmdSpec {
    /// Returns parameters of two ports that send received frames to each other.
    pub fn new(sockets: [String; 2], macs: [String; 2]) -> Self {
        Self {
            sockets,
            macs,
            listens: false,
            queues: 1,
            cpus: [0, 1],
            mode: "mac".to_owned(),
            extra: Vec::new(),
            device_extra: String::new(),
        }
    }
}

/// Counters of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Frames received.
    pub rx_packets: u64,
    /// Frames sent.
    pub tx_packets: u64,
}

/// Running testpmd; dropping it ends it and releases its memory.
#[derive(Debug)]
pub struct Testpmd {
    process: Process,
    input: ChildStdin,
    questions: u32,
    _memory: Hugepages,
}

impl Testpmd {
    /// Starts testpmd and waits until both links are up. It does not forward yet.
    ///
    /// # Errors
    /// There are no huge pages, or the switch did not respond, with the end of its log.
    pub fn start(rig: &Rig, spec: &TestpmdSpec) -> Result<Self> {
        let memory = Hugepages::reserve(PAGES * 2)?;
        let [main, forwarding] = spec.cpus;
        let side = if spec.listens { ",server=1" } else { "" };
        // The output of testpmd is read from a file, to which testpmd would otherwise write in
        // blocks.
        let mut arguments: Vec<String> = vec![
            "stdbuf".into(),
            "--output=L".into(),
            "dpdk-testpmd".into(),
            "-l".into(),
            format!("{main},{forwarding}"),
            "--main-lcore".into(),
            main.to_string(),
            "--no-pci".into(),
            "--in-memory".into(),
            "--single-file-segments".into(),
            "--socket-mem".into(),
            (PAGES * 2).to_string(),
        ];
        for (index, (socket, mac)) in spec.sockets.iter().zip(&spec.macs).enumerate() {
            arguments.push("--vdev".into());
            arguments.push(format!(
                "net_virtio_user{index},mac={mac},path={socket},queues={},queue_size=1024{side}{}",
                spec.queues, spec.device_extra
            ));
        }
        arguments.extend(
            [
                "--",
                "--interactive",
                "--nb-cores=1",
                "--no-mlockall",
                "--txd=1024",
                "--rxd=1024",
                &format!("--forward-mode={}", spec.mode),
                &format!("--eth-peer=0,{}", spec.macs[1]),
                &format!("--eth-peer=1,{}", spec.macs[0]),
            ]
            .map(str::to_owned),
        );
        if spec.queues > 1 {
            let queues = spec.queues;
            arguments.extend([format!("--rxq={queues}"), format!("--txq={queues}")]);
        }
        arguments.extend(spec.extra.iter().cloned());
        let mut process = Process::start(rig, "testpmd", &arguments)?;
        let input = process.take_stdin().context("testpmd has no input")?;
        let mut testpmd = Self { process, input, questions: 0, _memory: memory };
        wait_until("prompt of testpmd", LIMIT, || {
            testpmd.process.check_running()?;
            Ok(testpmd.process.log().contains("testpmd>"))
        })?;
        wait_until("link of both ports", LIMIT, || {
            let output = testpmd.ask("show port summary all")?;
            Ok(output
                .lines()
                .filter(|line| line.split_whitespace().any(|word| word == "up"))
                .count()
                == 2)
        })
        .with_context(|| testpmd.process.last_words())?;
        Ok(testpmd)
    }

    /// Sends a command.
    ///
    /// # Errors
    /// The program no longer runs.
    pub fn command(&mut self, command: &str) -> Result<()> {
        self.process.check_running()?;
        writeln!(self.input, "{command}")?;
        self.input.flush()?;
        Ok(())
    }

    /// Sends a command and returns its output.
    ///
    /// # Errors
    /// There is no output within a minute.
    pub fn ask(&mut self, command: &str) -> Result<String> {
        let before = self.process.log().len();
        self.command(command)?;
        // The error about this unknown command marks the end of the output.
        self.questions += 1;
        let end = format!("endofanswer{}", self.questions);
        self.command(&end)?;
        wait_for_value("answer of testpmd", LIMIT, || {
            self.process.check_running()?;
            let log = self.process.log();
            let output = log.get(before..).unwrap_or_default();
            Ok(output
                .find("Bad arguments")
                .or_else(|| output.find("Command not found"))
                .map(|end| output[..end].to_owned()))
        })
    }

    /// Starts forwarding with 256 frames from each port, which then circulate.
    ///
    /// # Errors
    /// The program no longer runs.
    pub fn start_circulating(&mut self) -> Result<()> {
        self.circulate(8)
    }

    /// Starts forwarding with `bursts` times 32 frames from each port.
    ///
    /// # Errors
    /// The program no longer runs.
    pub fn circulate(&mut self, bursts: u32) -> Result<()> {
        self.ask(&format!("start tx_first {bursts}")).map(|_| ())
    }

    /// Stops forwarding.
    ///
    /// # Errors
    /// The program does not respond.
    pub fn stop(&mut self) -> Result<()> {
        self.ask("stop").map(|_| ())
    }

    /// Returns the counters of both ports.
    ///
    /// # Errors
    /// The program does not respond.
    pub fn stats(&mut self) -> Result<[PortStats; 2]> {
        let output = self.ask("show port stats all")?;
        let mut ports: BTreeMap<usize, PortStats> = BTreeMap::new();
        let mut port = 0;
        for line in output.lines() {
            if let Some(rest) = line.split("statistics for port ").nth(1) {
                port = rest.split_whitespace().next().unwrap_or("0").parse()?;
            }
            let fields: Vec<&str> = line.split_whitespace().collect();
            match fields.as_slice() {
                ["RX-packets:", count, ..] => {
                    ports.entry(port).or_default().rx_packets = count.parse()?;
                }
                ["TX-packets:", count, ..] => {
                    ports.entry(port).or_default().tx_packets = count.parse()?;
                }
                _ => {}
            }
        }
        Ok([*ports.get(&0).context("no counters")?, *ports.get(&1).context("no counters")?])
    }

    /// Waits until each port has received more than `frames` since the start.
    ///
    /// # Errors
    /// A port has not received them within a minute, or the program does not respond.
    pub fn wait_received(&mut self, frames: u64) -> Result<()> {
        let mut stats = None;
        wait_until("frames received by both ports", LIMIT, || {
            let ports = stats.insert(self.stats()?);
            Ok(ports.iter().all(|port| port.rx_packets > frames))
        })
        .with_context(|| format!("{stats:?}"))
    }

    /// Measures the frames per second received by both ports together, over `window`.
    ///
    /// # Errors
    /// The program does not respond.
    pub fn rate(&mut self, window: Duration) -> Result<f64> {
        let first = self.stats()?;
        let started = Instant::now();
        // Duration of the measurement; this waits for nothing else.
        std::thread::sleep(window);
        let second = self.stats()?;
        let seconds = started.elapsed().as_secs_f64();
        let frames: u64 =
            first.iter().zip(&second).map(|(a, b)| b.rx_packets.saturating_sub(a.rx_packets)).sum();
        #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
        Ok(frames as f64 / seconds)
    }

    /// Returns the testpmd process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.command("quit");
        if self.process.wait(Duration::from_secs(5)).is_err() {
            self.process.kill();
        }
    }
}
