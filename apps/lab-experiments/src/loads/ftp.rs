//! FTP server in a guest, and external clients that download its files repeatedly.

use std::fs::{self, File};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Namespace, Process, Rig, wait_until};

use crate::requirement::{Requirement, programs};

const START_LIMIT: Duration = Duration::from_secs(10);
/// Time in seconds without data after which a client fails.
const STALL_S: &str = "10";

/// Returns the programs needed by server and clients.
pub(crate) fn requirements() -> Vec<Requirement> {
    programs(&[("vsftpd", "vsftpd"), ("curl", "curl"), ("sh", "dash")])
}

/// FTP server vsftpd with files `file1`, `file2` and so on. Dropping the value ends it.
#[derive(Debug)]
pub(crate) struct FtpServer {
    _process: Process,
}

impl FtpServer {
    /// Starts the server with `files` files of `file_bytes` bytes each, which are then in the page
    /// cache.
    ///
    /// # Errors
    /// The server does not start; the error contains its output.
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
            // Reading the file puts it into the page cache, so that downloads do not access the
            // disk.
            std::io::copy(&mut File::open(&path)?, &mut std::io::sink())?;
        }
        let file = format!("{folder}/vsftpd.conf");
        fs::write(&file, configuration(&folder))?;
        let mut process = namespace.start(rig, "vsftpd", &["vsftpd", &file])?;
        wait_until("listening vsftpd", START_LIMIT, || {
            process.check_running()?;
            Ok(namespace.run(&["ss", "-Hltn"])?.contains(":21 "))
        })?;
        Ok(Self { _process: process })
    }
}

/// Returns the configuration file of vsftpd. The server runs as the calling user, without a
/// separate user and without chroot.
fn configuration(folder: &str) -> String {
    format!(
        "listen=YES\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\nno_anon_password=YES\n\
         run_as_launching_user=YES\nanon_root={folder}/files\nsecure_chroot_dir={folder}/empty\n\
         xferlog_enable=NO\nuse_localtime=NO\nconnect_from_port_20=NO\nseccomp_sandbox=NO\n\
         max_clients=0\nmax_per_ip=0\n"
    )
}

/// Clients that download one file after the other. Dropping them ends them.
#[derive(Debug)]
pub(crate) struct FtpClients {
    processes: Vec<Process>,
}

impl FtpClients {
    /// Starts `clients` clients; each begins with a different file.
    ///
    /// # Errors
    /// The server does not deliver a file; the error contains the output of curl.
    pub(crate) fn start(
        rig: &Rig,
        from: &Namespace,
        to: &str,
        clients: usize,
        files: usize,
    ) -> Result<Self> {
        let listed = from.run(&["curl", "-sS", "--max-time", "10", "-l", &url(to, "")])?;
        ensure!(listed.contains("file1"), "vsftpd lists no files: {listed}");
        let start = |client: usize| {
            let script = script(to, client, files);
            from.start(rig, "ftp-client", &["sh", "-c", &script])
        };
        Ok(Self { processes: (0..clients).map(start).collect::<Result<_>>()? })
    }

    /// Checks that all clients are running.
    ///
    /// # Errors
    /// A client has ended; the error contains its last output.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check_running)
    }
}

fn url(host: &str, file: &str) -> String {
    format!("ftp://{host}/{file}")
}

/// Returns a shell loop that downloads one file after the other and ends with the first error.
fn script(server: &str, client: usize, files: usize) -> String {
    let order: Vec<String> =
        (0..files).map(|nth| format!("file{}", (client + nth) % files + 1)).collect();
    let urls = url(server, &format!("{{{}}}", order.join(",")));
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
        let script_text = script("10.77.0.10", 2, 4);
        assert!(
            script_text.contains("'ftp://10.77.0.10/{file3,file4,file1,file2}'"),
            "{script_text}"
        );
    }
}
