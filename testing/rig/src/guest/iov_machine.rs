//! A machine that has an adapter with SR-IOV, with Suimon inside it.

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
use crate::wait::until_some;

/// It boots within 13 s without hardware virtualization on a machine that does other things.
const BOOT_LIMIT: Duration = Duration::from_secs(400);
/// A command of ours starts within a second or two there.
const COMMAND_LIMIT: Duration = Duration::from_secs(240);
/// What its kernel is told. On a busy machine TCG's timer ticks too seldom for the kernel's check
/// of it, which ends in a panic.
const KERNEL_WORDS: &str = "console=ttyS0 quiet panic=-1 random.trust_cpu=on no_timer_check";
/// And where it has VMs: that its timer ticks by itself, as an interrupt that QEMU loses comes with
/// the next. Entering a VM, QEMU changes without its lock what is pending (`helper_vmrun`); a timer
/// that is set anew only when its interrupt has come would be silent for good.
const TICKS: &str = " nohz=off highres=off";
/// The daemon of a machine that has one.
const DAEMON: &str = "suimon";

/// What kind of machine.
#[derive(Clone, Copy, Debug)]
pub struct IovSpec {
    /// Whether it has an IOMMU at work.
    pub has_iommu: bool,
    /// Whether it has what takes VMs in it: QEMU, KVM, memory, and a kernel and initramfs in
    /// `/boot` whose `/nested` has 10.77.0.1 on its first NIC and serves iperf3. QEMU translates
    /// AMD's virtualization too (SVM), so that a VM in the machine is translated once.
    pub hosts_vms: bool,
    /// How many adapters it has, `eth0` and so on, all on one network.
    pub adapters: u8,
}

/// A machine whose adapters are Intel's 82576, emulated by QEMU (`igb`), with 7 virtual functions
/// each. Dropping it switches it off.
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
    /// Boots it. Nothing of Suimon runs yet.
    ///
    /// # Errors
    /// QEMU or the kernel cannot be had, or it did not boot in time; with its words.
    pub fn start(rig: &Rig, spec: IovSpec) -> Result<Self> {
        let files = iov_files()?;
        let initramfs = suimon_inside(rig, &files, spec.hosts_vms)?;
        let (console, line) = (rig.path(&rig.unique("console")), rig.path(&rig.unique("serial")));
        let mut words = files.qemu.clone();
        let mut append = KERNEL_WORDS.to_owned();
        words.extend(
            ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"].map(str::to_owned),
        );
        let mut add = |option: &str, value: &str| {
            words.extend([option.to_owned(), value.to_owned()]);
        };
        add("-machine", "q35,kernel-irqchip=split");
        add("-accel", "tcg");
        // A machine that resets itself ends without a word else.
        add("-d", "cpu_reset");
        add("-cpu", "max");
        // All of it lies below 4 GiB. With more, the firmware places the functions' registers
        // above, where the emulated adapter does not answer.
        add("-m", if spec.hosts_vms { "2560" } else { "1024" });
        // Each CPU is a thread of QEMU's. Beside another the virtualization that it translates is
        // not right, with any VM.
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
        for at in 0..spec.adapters {
            let chassis = at + 1;
            add("-device", &format!("pcie-root-port,id=port{at},chassis={chassis},slot={chassis}"));
            add("-netdev", &format!("hubport,id=net{at},hubid=0"));
            let mac = format!("52:54:00:00:aa:{at:02x}");
            add("-device", &format!("igb,netdev=net{at},bus=port{at},mac={mac}"));
        }
        let mut process = Process::start(rig, "qemu-iov", &words)?;
        let channel = until_some("serial line of the machine", Duration::from_secs(90), || {
            process.check_running()?;
            Ok(Channel::connect(Path::new(&line)).ok())
        })?;
        let records = vec![console.clone().into(), process.log_file().to_owned()];
        let mut shell = GuestShell::new("iov", channel.with_records(records));
        if let Err(error) = shell.wait_ready(BOOT_LIMIT, || process.check_running()) {
            let said = std::fs::read_to_string(&console).unwrap_or_default();
            bail!("{error:#}; QEMU: {}; console:\n{said}", process.last_words());
        }
        if spec.hosts_vms {
            // As udev leaves it: whoever is in its group may use KVM.
            shell.run("chgrp 36 /dev/kvm && chmod 660 /dev/kvm")?;
        }
        Ok(Self { shell, _process: process })
    }

    /// Writes a file inside, of text without apostrophes.
    ///
    /// # Errors
    /// Its folder is not there.
    pub fn write(&mut self, path: &str, text: &str) -> Result<()> {
        // A command is one line.
        let lines = text.lines().map(|line| format!(" '{line}'"));
        self.run(&format!("printf '%s\\n'{} >{path}", lines.collect::<String>()))?;
        Ok(())
    }

    /// Starts the daemon inside, confined, and waits until it serves.
    ///
    /// # Errors
    /// It does not, with its words.
    pub fn start_daemon(&mut self) -> Result<()> {
        self.start_daemon_of(DAEMON, "")
    }

    /// The same for one of several daemons, with more arguments.
    ///
    /// # Errors
    /// It does not, with its words.
    pub fn start_daemon_of(&mut self, node: &str, arguments: &str) -> Result<()> {
        let socket = socket_of(node);
        let start = format!(
            "mkdir -p /run/{node}; rm -f {socket}; \
             (suimond --state-dir /var/lib/{node} --socket {socket} \
             {arguments} >>/tmp/{node}.log 2>&1 & echo $! >/tmp/{node}.pid); \
             for i in $(seq 300); do suimon --socket {socket} host show >/tmp/host && break; \
             usleep 100000; done; cat /tmp/host || cat /tmp/{node}.log"
        );
        let said = self.run_any(&start, COMMAND_LIMIT)?;
        if !said.stdout.contains("confined  full") {
            bail!("the daemon is not there, or not confined: {}", said.stdout);
        }
        Ok(())
    }

    /// Kills the daemon inside, and waits until it is gone.
    ///
    /// # Errors
    /// It was not there.
    pub fn kill_daemon(&mut self) -> Result<()> {
        self.run(&format!(
            "p=$(cat /tmp/{DAEMON}.pid); kill -9 $p; while kill -0 $p; do usleep 50000; done"
        ))?;
        Ok(())
    }

    /// What `suimon` says to these words; messages and data in one text.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn suimon(&mut self, words: &str) -> Result<Output> {
        self.suimon_of(DAEMON, words)
    }

    /// The same, asked of one of several daemons.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn suimon_of(&mut self, node: &str, words: &str) -> Result<Output> {
        let socket = socket_of(node);
        self.run_any(&format!("suimon --socket {socket} {words}"), COMMAND_LIMIT)
    }

    /// What `suimon` says to these words, which must end well.
    ///
    /// # Errors
    /// It did not, with its words.
    pub fn suimon_well(&mut self, words: &str) -> Result<String> {
        self.suimon_well_of(DAEMON, words)
    }

    /// The same, asked of one of several daemons.
    ///
    /// # Errors
    /// It did not, with its words.
    pub fn suimon_well_of(&mut self, node: &str, words: &str) -> Result<String> {
        let said = self.suimon_of(node, words)?;
        if !said.is_ok() {
            bail!("`suimon {words}` failed with {}: {}", said.code, said.stdout);
        }
        Ok(said.stdout)
    }
}

fn socket_of(node: &str) -> String {
    format!("/run/{node}/suimon.sock")
}
