//! An FTP server in a light guest, and clients that get its files again and again.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Namespace, Process, Rig, until};

use crate::experiment::Need;

const START_LIMIT: Duration = Duration::from_secs(10);

/// The name of a file in which the kernel finds no bytes; curl writes there.
const NOWHERE: &str = "/dev/null";

/// vsftpd with files of a size.
pub(crate) struct FtpServer {
    server: Process,
    files: u32,
}

/// Clients under way.
pub(crate) struct FtpClients {
    clients: Vec<Process>,
}

impl FtpServer {
    pub(crate) fn needs() -> Vec<Need> {
        vec![
            Need::Program { name: "vsftpd", package: "vsftpd" },
            Need::Program { name: "curl", package: "curl" },
            Need::Program { name: "ss", package: "iproute2" },
        ]
    }

    /// Serves so many files of so many MiB. They have no blocks on a disk: what is read is pages of
    /// zeros in memory, as it would be of files that were read before.
    pub(crate) fn start(rig: &Rig, guest: &Namespace, files: u32, mib: u64) -> Result<Self> {
        let (folder, empty) = (rig.path("ftp"), rig.path("ftp-empty"));
        for path in [&folder, &empty] {
            fs::create_dir(path).with_context(|| path.clone())?;
        }
        // Who serves strangers is not root, and has to get to the folder.
        fs::set_permissions(rig.folder(), Permissions::from_mode(0o711))?;
        for number in 0..files {
            File::create(format!("{folder}/file{number}"))?.set_len(mib << 20)?;
        }
        let settings = rig.path("vsftpd.conf");
        fs::write(
            &settings,
            format!(
                "listen=YES\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\n\
                 no_anon_password=YES\nanon_root={folder}\nsecure_chroot_dir={empty}\n\
                 ftp_username=ftp\nnopriv_user=nobody\nmax_clients=1000\nmax_per_ip=0\n\
                 use_sendfile=YES\nisolate=NO\nisolate_network=NO\nseccomp_sandbox=NO\n"
            ),
        )?;
        let mut server = guest.start(rig, "vsftpd", &["vsftpd", &settings])?;
        until("listening vsftpd", START_LIMIT, || {
            server.check_running()?;
            Ok(guest.run(&["ss", "-Hltn"])?.contains(":21 "))
        })?;
        Ok(Self { server, files })
    }

    /// Has so many clients get the files, one after another for as long as they live. Each takes so
    /// many bytes a second at most, if that is said.
    pub(crate) fn load(
        &mut self,
        rig: &Rig,
        from: &Namespace,
        address: &str,
        clients: u32,
        bytes_per_s: Option<u64>,
    ) -> Result<FtpClients> {
        let mut started = Vec::new();
        for client in 0..clients {
            let list = rig.path(&rig.unique("client"));
            // Each begins with another file, and has more of them than it can get in any time.
            let line = |at: u32| {
                let file = (client + at) % self.files.max(1);
                format!("url=ftp://{address}/file{file}\noutput={NOWHERE}\n")
            };
            fs::write(&list, (0..10_000).map(line).collect::<String>())?;
            let rate = bytes_per_s.map(|rate| rate.to_string());
            let mut words =
                vec!["curl", "--silent", "--show-error", "--fail-early", "--config", &list];
            if let Some(rate) = &rate {
                words.extend(["--limit-rate", rate]);
            }
            started.push(from.start(rig, "ftp-client", &words)?);
        }
        let mut load = FtpClients { clients: started };
        let connections = clients as usize;
        until("clients that get files", START_LIMIT, || {
            self.server.check_running()?;
            load.check()?;
            let there = from.run(&["ss", "-Htn", "state", "established"])?;
            Ok(there.lines().count() >= connections)
        })?;
        Ok(load)
    }
}

impl FtpClients {
    /// Fails with its words if one has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.clients.iter_mut().try_for_each(Process::check_running)
    }

    /// CPU time that they have used.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        let times: Vec<Duration> =
            self.clients.iter().map(Process::cpu_time).collect::<Result<_>>()?;
        ensure!(!times.is_empty(), "there are no clients");
        Ok(times.into_iter().sum())
    }
}
