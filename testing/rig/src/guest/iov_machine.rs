//! Machine that has an adapter with SR-IOV, with Suimon inside it.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::command::Output;
use crate::guest::channel::Channel;
use crate::guest::iov_files::{iov_files, suimon_inside};
use crate::guest::shell::GuestShell;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::wait_for_value;

/// Time limit for booting, which takes up to 13 s without hardware virtualization on a loaded
/// machine.
const BOOT_LIMIT: Duration = Duration::from_secs(400);
/// Time limit of a command; a program of Suimon starts there within a second or two.
const COMMAND_LIMIT: Duration = Duration::from_secs(240);
/// Kernel options. On a loaded machine TCG's timer ticks too rarely for the kernel's check, which
/// would panic.
const KERNEL_WORDS: &str = "console=ttyS0 quiet panic=-1 random.trust_cpu=on no_timer_check";
/// Additional options if it runs VMs: a periodic timer, so that an interrupt that QEMU loses is
/// followed by the next one. When entering a VM, QEMU changes the pending interrupts without its
/// lock (`helper_vmrun`). A one-shot timer, which is only set again after its interrupt, would stop
/// permanently.
const TICKS: &str = " nohz=off highres=off";
/// Name of the daemon of a machine with a single one.
const DAEMON: &str = "suimon";

/// Configuration of the machine.
#[derive(Clone, Copy, Debug)]
pub struct IovSpec {
    /// True if it has an enabled IOMMU.
    pub has_iommu: bool,
    /// True if it can run VMs: it has QEMU, KVM, memory, and a kernel and initramfs in `/boot`
    /// whose `/nested` has 10.77.0.1 on its first NIC and serves iperf3. QEMU translates AMD's
    /// virtualization too (SVM), so that a VM in the machine is translated once.
    pub hosts_vms: bool,
    /// Number of adapters, `eth0` and so on, all on one network.
    pub adapters: u8,
}

/// Machine whose adapters are Intel's 82576, emulated by QEMU (`igb`), with 7 virtual functions
/// each. Dropping it turns it off.
#[derive(Debug)]
pub struct IovMachine {
    shell: GuestShell,
    _process: Process,
}

impl Deref for IovMachine {
    type Target = GuestShell;

    fn deref(&self) -> &GuestShell {
        &self.shell
    }
}

impl DerefMut for IovMachine {
    fn deref_mut(&mut self) -> &mut GuestShell {
        &mut self.shell
    }
}

impl IovMachine {
    /// Boots the machine. No program of Suimon runs yet.
    ///
    /// # Errors
    /// QEMU or the kernel is not available, or it did not boot in time, with its output.
    pub fn start(rig: &Rig, spec: IovSpec) -> Result<Self> {
        let files = iov_files()?;
        let initramfs = suimon_inside(rig, &files, spec.hosts_vms)?;
        let (console, line) = (rig.path(&rig.unique("console")), rig.path(&rig.unique("serial")));
        let mut arguments = files.qemu.clone();
        let mut append = KERNEL_WORDS.to_owned();
        arguments.extend(
            ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"].map(str::to_owned),
        );
        let mut add = |option: &str, value: &str| {
            arguments.extend([option.to_owned(), value.to_owned()]);
        };
        add("-machine", "q35,kernel-irqchip=split");
        add("-accel", "tcg");
        // Without it, a machine that resets itself ends without any message.
        add("-d", "cpu_reset");
        add("-cpu", "max");
        // All memory is below 4 GiB. With more, the firmware places the functions' registers above
        // it, where the emulated adapter does not respond.
        add("-m", if spec.hosts_vms { "2560" } else { "1024" });
        // Each CPU is a thread of QEMU. With several of them, the translated virtualization is
        // incorrect for any VM.
        add("-smp", "1");
        if spec.hosts_vms {
            append.push_str(TICKS);
        }
        if spec.has_iommu {
            add("-device", "intel-iommu,intremap=on");
            append.push_str(" intel_iommu=on iommu=pt");
        }
        add("-kernel", &files.kernel.to_string_lossy());
        add("-initrd", &initramfs.to_string_lossy());
        add("-append", &append);
        add("-chardev", &format!("file,id=console,path={console}"));
        add("-serial", "chardev:console");
        add("-chardev", &format!("socket,id=line,path={line},server=on,wait=on"));
        add("-serial", "chardev:line");
        for index in 0..spec.adapters {
            let chassis = index + 1;
            add(
                "-device",
                &format!("pcie-root-port,id=port{index},chassis={chassis},slot={chassis}"),
            );
            add("-netdev", &format!("hubport,id=net{index},hubid=0"));
            let mac = format!("52:54:00:00:aa:{index:02x}");
            add("-device", &format!("igb,netdev=net{index},bus=port{index},mac={mac}"));
        }
        let mut process = Process::start(rig, "qemu-iov", &arguments)?;
        let channel =
            wait_for_value("serial line of the machine", Duration::from_secs(90), || {
                process.check_running()?;
                Ok(Channel::connect(Path::new(&line)).ok())
            })?;
        let records = vec![console.clone().into(), process.log_file().to_owned()];
        let mut shell = GuestShell::new("iov", channel.with_records(records));
        if let Err(error) = shell.wait_ready(BOOT_LIMIT, || process.check_running()) {
            let console_text = std::fs::read_to_string(&console).unwrap_or_default();
            bail!("{error:#}; QEMU: {}; console:\n{console_text}", process.last_words());
        }
        if spec.hosts_vms {
            // As udev configures it: members of its group may use KVM.
            shell.run("chgrp 36 /dev/kvm && chmod 660 /dev/kvm")?;
        }
        Ok(Self { shell, _process: process })
    }

    /// Writes a file inside the machine; the text must not contain apostrophes.
    ///
    /// # Errors
    /// The folder of the file does not exist.
    pub fn write(&mut self, path: &str, text: &str) -> Result<()> {
        // A command is one line.
        let lines = text.lines().map(|line| format!(" '{line}'"));
        self.run(&format!("printf '%s\\n'{} >{path}", lines.collect::<String>()))?;
        Ok(())
    }

    /// Starts the daemon inside, confined, and waits until it serves requests.
    ///
    /// # Errors
    /// The daemon does not serve requests, with its output.
    pub fn start_daemon(&mut self) -> Result<()> {
        self.start_daemon_of(DAEMON, "")
    }

    /// Starts one of several daemons, with additional arguments.
    ///
    /// # Errors
    /// The daemon does not serve requests, with its output.
    pub fn start_daemon_of(&mut self, node: &str, arguments: &str) -> Result<()> {
        let socket = socket_of(node);
        let start = format!(
            "mkdir -p /run/{node}; rm -f {socket}; \
             (suimond --state-dir /var/lib/{node} --socket {socket} \
             {arguments} >>/tmp/{node}.log 2>&1 & echo $! >/tmp/{node}.pid); \
             for i in $(seq 300); do suimon --socket {socket} host show >/tmp/host && break; \
             usleep 100000; done; cat /tmp/host || cat /tmp/{node}.log"
        );
        let output = self.run_any(&start, COMMAND_LIMIT)?;
        if !output.stdout.contains("confined  full") {
            bail!("the daemon is not there, or not confined: {}", output.stdout);
        }
        Ok(())
    }

    /// Kills the daemon inside, and waits for its end.
    ///
    /// # Errors
    /// The daemon was not running.
    pub fn kill_daemon(&mut self) -> Result<()> {
        self.run(&format!(
            "p=$(cat /tmp/{DAEMON}.pid); kill -9 $p; while kill -0 $p; do usleep 50000; done"
        ))?;
        Ok(())
    }

    /// Runs `suimon` with these arguments. Returns its output, with messages and data combined.
    ///
    /// # Errors
    /// The machine has ended.
    pub fn suimon(&mut self, arguments: &str) -> Result<Output> {
        self.suimon_of(DAEMON, arguments)
    }

    /// Runs `suimon` with one of several daemons.
    ///
    /// # Errors
    /// The machine has ended.
    pub fn suimon_of(&mut self, node: &str, arguments: &str) -> Result<Output> {
        let socket = socket_of(node);
        self.run_any(&format!("suimon --socket {socket} {arguments}"), COMMAND_LIMIT)
    }

    /// Runs `suimon` with these arguments, which must succeed.
    ///
    /// # Errors
    /// The command failed, with its output.
    pub fn suimon_well(&mut self, arguments: &str) -> Result<String> {
        self.suimon_well_of(DAEMON, arguments)
    }

    /// Runs `suimon` with one of several daemons, which must succeed.
    ///
    /// # Errors
    /// The command failed, with its output.
    pub fn suimon_well_of(&mut self, node: &str, arguments: &str) -> Result<String> {
        let output = self.suimon_of(node, arguments)?;
        if !output.is_ok() {
            bail!("`suimon {arguments}` failed with {}: {}", output.code, output.stdout);
        }
        Ok(output.stdout)
    }
}

fn socket_of(node: &str) -> String {
    format!("/run/{node}/suimon.sock")
}
