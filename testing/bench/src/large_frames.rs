//! Benchmark of large TCP frames between VMs over vhost-user with one switching CPU, compared with
//! Open vSwitch and with copying from one VM's memory to the other's on the same CPU. The VMs are
//! one program in C with DPDK's virtio driver, compiled when the benchmark runs.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Daemon, Hugepages, Process, Rig, ovs, wait_until};

use crate::c_program::{Needs, compile};
use crate::report::{Bar, Pair, Sample, Work, needs_measurement};
use crate::vhost_user::{GUESTS, MACS, SWITCHING, host_file};

const SOURCE: &str = include_str!("large_frames.c");
/// Frames in flight, and buffers that the receiver offers. The smaller number fits a usual cache,
/// the larger does not.
const IN_FLIGHT: [u32; 2] = [32, 256];
/// Entries of each ring, QEMU's default.
const RING: u32 = 256;
const WARM_UP: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(3);
/// Time for each of two copy methods.
const COPY_WINDOW: Duration = Duration::from_secs(1);
/// Time limit for steps that take negligible time.
const SLACK: Duration = Duration::from_secs(30);
/// Huge pages of 2 MiB for the VMs' memory.
const PAGES: u64 = 128;
const GBITS_PER_GB: f64 = 8.0;

/// Measures `pairs` pairs with each number of frames in flight. Each measurement of Suimon is
/// compared with both peers.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let rig = Rig::new()?;
    let program = compile(&rig, "large_frames", SOURCE, Needs::Dpdk);
    let mut benchmarks = Vec::new();
    for in_flight in IN_FLIGHT {
        let [mut copying, mut switching] = new_works(in_flight);
        match &program {
            Ok(program) => {
                while needs_measurement(&copying, pairs) || needs_measurement(&switching, pairs) {
                    measure_pair(program, in_flight, &mut copying, &mut switching)?;
                }
            }
            Err(error) => {
                let reason = Some(format!("{error:#}"));
                (copying.missing, switching.missing) = (reason.clone(), reason);
            }
        }
        benchmarks.extend([copying, switching]);
    }
    Ok(benchmarks)
}

/// Creates the comparisons with copying and with Open vSwitch.
fn new_works(in_flight: u32) -> [Work; 2] {
    let title = format!(
        "VM to VM, TCP frames of 64 KB, vhost-user, one switching CPU, {in_flight} under way"
    );
    let peers = [("copy", "Copying"), ("ovs", "Open vSwitch with DPDK, userspace TSO")];
    let [copying, mut switching] = peers.map(|(name, peer)| {
        Work::new(&format!("large-frames-{in_flight}-{name}"), &title, peer, "Gbit/s")
    });
    let copying = copying.with_bar(Bar::Ratio(0.7));
    if !ovs::is_installed() {
        switching.missing = Some("openvswitch-switch-dpdk is not installed".to_owned());
    }
    [copying, switching]
}

fn measure_pair(
    program: &str,
    in_flight: u32,
    copying: &mut Work,
    switching: &mut Work,
) -> Result<()> {
    let mut peer = None;
    if switching.missing.is_none() {
        match through_open_vswitch(program, in_flight) {
            Ok(sample) => peer = Some(sample),
            // The installed version may not support such frames.
            Err(error) if switching.pairs.is_empty() => {
                switching.missing = Some(format!("{error:#}").replace('\n', " "));
            }
            Err(error) => return Err(error),
        }
    }
    let suimon = through_suimon(program, in_flight)?;
    let copied = suimon.copied.context("the VMs did not print the copied bytes")?;
    let [from, to] = copied.buffers;
    copying.peer = format!("Copying the same frames from {from} buffers to {to}, no switch");
    copying.push(Pair { peer: copied.sample, suimon: suimon.switched });
    if let Some(peer) = peer {
        switching.push(Pair { peer, suimon: suimon.switched });
    }
    Ok(())
}

/// Result of one run of the VMs.
struct Run {
    switched: Sample,
    /// Result of copying afterwards on the CPU that had switched.
    copied: Option<Copied>,
}

struct Copied {
    sample: Sample,
    /// Buffers of the sender, and of the receiver.
    buffers: [f64; 2],
}

fn through_open_vswitch(program: &str, in_flight: u32) -> Result<Sample> {
    let rig = Rig::new()?;
    let large = ["other_config:userspace-tso-enable=true"];
    let switch = ovs::OvsDpdk::start_with(&rig, SWITCHING, GUESTS, &large)?;
    // The thread never releases the CPU, so nothing can be copied on it.
    let run =
        run_vms(&rig, &testpmd_arguments(program, &switch.sockets(), in_flight, Duration::ZERO))?;
    Ok(run.switched)
}

fn through_suimon(program: &str, in_flight: u32) -> Result<Run> {
    let rig = Rig::new()?;
    let sockets = [rig.path("vh0.sock"), rig.path("vh1.sock")];
    let _daemon = Daemon::start(&rig, &host_file(&sockets))?;
    run_vms(&rig, &testpmd_arguments(program, &sockets, in_flight, COPY_WINDOW))
}

/// Runs the VMs. The distance of the CPUs is measured while the VMs are idle, and after they have
/// ended.
fn run_vms(rig: &Rig, arguments: &[String]) -> Result<Run> {
    let _memory = Hugepages::reserve(PAGES)?;
    let mut vms = Process::start(rig, "vms", arguments)?;
    let mut input = vms.take_stdin().context("the VMs have no input")?;
    wait_until("links of both VMs", SLACK, || {
        vms.check_running()?;
        Ok(vms.log().contains("ready"))
    })
    .with_context(|| vms.last_words())?;
    let switched = Sample::take([SWITCHING, GUESTS], || {
        writeln!(input)?;
        let status = vms.wait(WARM_UP + WINDOW + 3 * COPY_WINDOW + SLACK)?;
        let log = vms.log();
        let last = log.lines().last().unwrap_or_default();
        ensure!(status.success(), "the VMs ended ({status}): {last}");
        let [rate] =
            figures(&log, "switched").context("the VMs did not print the received bytes")?;
        Ok(rate * GBITS_PER_GB)
    })?;
    let copied = figures(&vms.log(), "copied").map(|[rate, from, to]| Copied {
        sample: Sample { rate: rate * GBITS_PER_GB, ..switched },
        buffers: [from, to],
    });
    Ok(Run { switched, copied })
}

fn testpmd_arguments(
    program: &str,
    sockets: &[String; 2],
    in_flight: u32,
    copy: Duration,
) -> Vec<String> {
    let mut arguments = vec![program.to_owned(), "-l".to_owned(), format!("{SWITCHING},{GUESTS}")];
    arguments.extend(["--main-lcore".to_owned(), SWITCHING.to_string()]);
    arguments.extend(["--no-pci", "--in-memory", "--single-file-segments"].map(str::to_owned));
    arguments.extend(["--socket-mem".to_owned(), (PAGES * 2).to_string()]);
    for (nth, (socket, mac)) in sockets.iter().zip(MACS).enumerate() {
        arguments.push("--vdev".to_owned());
        arguments.push(format!(
            "net_virtio_user{nth},mac={mac},path={socket},queues=1,queue_size={RING},server=1"
        ));
    }
    arguments.extend(["--".to_owned(), in_flight.to_string()]);
    arguments.extend([WARM_UP, WINDOW, copy].map(|time| time.as_secs_f64().to_string()));
    arguments
}

/// Returns the numbers on the line that begins with this word.
fn figures<const N: usize>(log: &str, keyword: &str) -> Option<[f64; N]> {
    let line = log.lines().find_map(|line| line.strip_prefix(keyword)?.strip_prefix(' '))?;
    let figures: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
    figures.ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_line_that_begins_with_the_word() {
        let log = "EAL: nothing was switched 9\nready\nswitched 5.5\ncopied 10.25 56 40\n";
        assert_eq!(figures(log, "switched"), Some([5.5]));
        assert_eq!(figures(log, "copied"), Some([10.25, 56.0, 40.0]));
        assert_eq!(figures::<1>(log, "copied"), None);
        assert_eq!(figures::<1>(log, "read"), None);
        assert_eq!(figures::<1>("switched much\n", "switched"), None);
    }
}
