//! An FTP server in a guest, and clients outside that get its files again and again.

use std::fs::{self, File};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Namespace, Process, Rig, until};

use crate::experiment::Need;

const START_LIMIT: Duration = Duration::from_secs(10);
/// A client that gets nothing for so many seconds ends with an error.
const STALL_S: &str = "10";

/// The programs of both sides.
pub(crate) fn needs() -> Vec<Need> {
    [("vsftpd", "vsftpd"), ("curl", "curl"), ("sh", "dash")]
        .map(|(name, package)| Need::Program { name, package })
        .to_vec()
}

/// vsftpd with files `file1` and so on; dropping it ends it.
#[derive(Debug)]
pub(crate) struct FtpServer {
    _process: Process,
}

impl FtpServer {
    /// Starts it with so many files of so many bytes, which are in the page cache then.
    ///
    /// # Errors
    /// It says why it does not start.
    pub(crate) fn start(
        rig: &Rig,
        namespace: &Namespace,
        files: usize,
        file_bytes: u64,
    ) -> Result<Self> {
        let name = rig.unique("ftp");
        let folder = rig.path(&name);
        fs::create_dir_all(format!("{folder}/files"))?;
        fs::create_dir_all(format!("{folder}/empty"))?;
        for number in 1..=files {
            let path = format!("{folder}/files/file{number}");
            File::create(&path)?.set_len(file_bytes).with_context(|| path.clone())?;
            // The disk is not what is measured.
            std::io::copy(&mut File::open(&path)?, &mut std::io::sink())?;
        }
        let file = format!("{folder}/vsftpd.conf");
        fs::write(&file, configuration(&folder))?;
        let mut process = namespace.start(rig, "vsftpd", &["vsftpd", &file])?;
        until("listening vsftpd", START_LIMIT, || {
            process.check_running()?;
            Ok(namespace.run(&["ss", "-Hltn"])?.contains(":21 "))
        })?;
        Ok(Self { _process: process })
    }
}

/// It runs as who started it: it needs no user of its own then and does not change its root.
fn configuration(folder: &str) -> String {
    format!(
        "listen=YES\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\nno_anon_password=YES\n\
         run_as_launching_user=YES\nanon_root={folder}/files\nsecure_chroot_dir={folder}/empty\n\
         xferlog_enable=NO\nuse_localtime=NO\nconnect_from_port_20=NO\nseccomp_sandbox=NO\n\
         max_clients=0\nmax_per_ip=0\n"
    )
}

/// Clients that get one file after the other; dropping them ends them.
#[derive(Debug)]
pub(crate) struct FtpClients {
    processes: Vec<Process>,
}

impl FtpClients {
    /// Starts so many; each begins with another file.
    ///
    /// # Errors
    /// The server does not give a file, with curl's words.
    pub(crate) fn start(
        rig: &Rig,
        from: &Namespace,
        to: &str,
        clients: usize,
        files: usize,
    ) -> Result<Self> {
        let listed = from.run(&["curl", "-sS", "--max-time", "10", "-l", &url(to, "")])?;
        ensure!(listed.contains("file1"), "vsftpd has no files: {listed}");
        let start = |client: usize| {
            let script = script(to, client, files);
            from.start(rig, "ftp-client", &["sh", "-c", &script])
        };
        Ok(Self { processes: (0..clients).map(start).collect::<Result<_>>()? })
    }

    /// Whether all are still at it.
    ///
    /// # Errors
    /// One has ended, with its last words.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check_running)
    }
}

fn url(host: &str, file: &str) -> String {
    format!("ftp://{host}/{file}")
}

/// A loop that ends with the first error.
fn script(to: &str, client: usize, files: usize) -> String {
    let order: Vec<String> =
        (0..files).map(|nth| format!("file{}", (client + nth) % files + 1)).collect();
    let urls = url(to, &format!("{{{}}}", order.join(",")));
    format!(
        "while curl -sS --connect-timeout 10 --speed-limit 1 --speed-time {STALL_S} \
         -o /dev/null '{urls}'; do :; done; exit 1"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_gets_every_file_and_begins_with_its_own() {
        let words = script("10.77.0.10", 2, 4);
        assert!(words.contains("'ftp://10.77.0.10/{file3,file4,file1,file2}'"), "{words}");
    }
}
