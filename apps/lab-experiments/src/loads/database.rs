//! MariaDB in a namespace guest, and sysbench in another one.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_lab_run::Statistics;
use suimon_rig::{Namespace, Process, Rig, run_any, wait_until};

use super::vcpus::Vcpus;
use crate::environment::Environment;
use crate::requirement::{Requirement, daemon, programs};

const START_LIMIT: Duration = Duration::from_secs(60);
const PREPARE_LIMIT: Duration = Duration::from_secs(120);
const END_LIMIT: Duration = Duration::from_secs(30);

/// Database server that listens on an address of its guest. Dropping it kills the process; MariaDB
/// recovers from that.
pub(crate) struct Database {
    server: Process,
    address: String,
}

/// Parameters of a load by sysbench's `oltp_read_write`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transactions {
    pub(crate) threads: u32,
    pub(crate) tables: u32,
    /// Rows of each table.
    pub(crate) rows: u32,
    pub(crate) warm_up_s: u64,
    pub(crate) measure_s: u64,
}

/// Transactions completed under the load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TransactionResult {
    /// Pairs of second since the start of the measurement, and transactions per second in it.
    pub(crate) rate_by_second: Vec<(f64, f64)>,
    /// Mean rate of transactions per second.
    pub(crate) transactions_per_s: f64,
    /// 95th percentile of the latency in ms: the median over the seconds.
    pub(crate) p95_ms: f64,
    pub(crate) errors: f64,
}

impl Database {
    pub(crate) fn requirements() -> Vec<Requirement> {
        programs(&[
            ("mariadbd", "mariadb-server-core"),
            ("mariadb-install-db", "mariadb-server-core"),
            ("mariadb", "mariadb-client-core"),
            ("sysbench", "sysbench"),
            ("taskset", "util-linux"),
        ])
    }

    /// Returns the requirements of kinds with databases: a daemon with namespace guests, and
    /// programs to attach disks to the host over NBD.
    pub(crate) fn testbed_requirements() -> Vec<Requirement> {
        [
            daemon(),
            programs(&[
                ("ip", "iproute2"),
                ("curl", "curl"),
                ("losetup", "mount"),
                ("mkfs.ext4", "e2fsprogs"),
                ("nbdfuse", "libnbd-bin"),
            ]),
        ]
        .concat()
    }

    /// Creates a database in a folder and starts the server.
    pub(crate) fn start(
        rig: &Rig,
        guest: &Namespace,
        address: &str,
        folder: &str,
        vcpus: &Vcpus,
    ) -> Result<Self> {
        let data = format!("{folder}/data");
        fs::create_dir(&data).with_context(|| data.clone())?;
        let data_flag = format!("--datadir={data}");
        let normal = "--auth-root-authentication-method=normal";
        let install = [
            "mariadb-install-db",
            "--no-defaults",
            "--user=root",
            &data_flag,
            normal,
            "--skip-test-db",
        ];
        let result = run_any(&install, START_LIMIT)?;
        ensure!(result.is_ok(), "mariadb-install-db: {}{}", result.stdout, result.stderr);
        let socket = rig.path(&rig.unique("db"));
        let socket_flag = format!("--socket={socket}");
        let address_flag = format!("--bind-address={address}");
        let command = [
            "mariadbd",
            "--no-defaults",
            "--user=root",
            &data_flag,
            &socket_flag,
            &address_flag,
            "--port=3306",
            "--skip-name-resolve",
            "--skip-log-bin",
            // Smaller than the data, so that reads access the disk.
            "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=48M",
            "--innodb-flush-method=O_DIRECT",
            "--innodb-flush-log-at-trx-commit=1",
            "--performance-schema=OFF",
        ];
        let mut server = guest.start(rig, "mariadb", &vcpus.pinned_command(&command))?;
        let sql =
            "CREATE DATABASE sbtest; CREATE USER sbtest@'%'; GRANT ALL ON sbtest.* TO sbtest@'%'";
        wait_until("MariaDB that accepts connections", START_LIMIT, || {
            server.check_running()?;
            let query =
                ["mariadb", "--no-defaults", "--user=root", &socket_flag, "--execute", "SELECT 1"];
            Ok(run_any(&query, Duration::from_secs(5))?.is_ok())
        })?;
        let result = run_any(
            &["mariadb", "--no-defaults", "--user=root", &socket_flag, "--execute", sql],
            START_LIMIT,
        )?;
        ensure!(result.is_ok(), "MariaDB: {}", result.stderr);
        Ok(Self { server, address: address.to_owned() })
    }

    /// Creates and fills the tables from the guest that later runs the load.
    pub(crate) fn prepare(&mut self, source: &Namespace, transactions: Transactions) -> Result<()> {
        let command = self.arguments(transactions, "prepare");
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let output = source.run_any(&command, PREPARE_LIMIT)?;
        ensure!(
            output.is_ok(),
            "sysbench prepare: {}{}\n{}",
            output.stdout,
            output.stderr,
            self.server.last_words()
        );
        Ok(())
    }

    /// Starts sysbench with this load. [`Database::finish`] returns its result.
    pub(crate) fn start_load(
        &self,
        rig: &Rig,
        source: &Namespace,
        transactions: Transactions,
    ) -> Result<Process> {
        let command = self.arguments(transactions, "run");
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        source.start(rig, "sysbench", &command)
    }

    /// Waits for the end of the load and returns its result.
    pub(crate) fn finish(
        &mut self,
        asking: &mut Process,
        transactions: Transactions,
        environment: &Environment<'_>,
    ) -> Result<TransactionResult> {
        let limit =
            Duration::from_secs(transactions.warm_up_s + transactions.measure_s) + END_LIMIT;
        let status = environment.wait_for(asking, limit).context("sysbench failed")?;
        ensure!(
            status.success(),
            "sysbench ended ({status}): {}\n{}",
            asking.last_words(),
            self.server.last_words()
        );
        read(&asking.log(), transactions.warm_up_s)
    }

    fn arguments(&self, transactions: Transactions, verb: &str) -> Vec<String> {
        let Transactions { threads, tables, rows, warm_up_s, measure_s } = transactions;
        let mut command = vec!["sysbench".to_owned(), "oltp_read_write".to_owned()];
        for (key, value) in [
            ("mysql-host", self.address.clone()),
            ("mysql-user", "sbtest".to_owned()),
            ("mysql-db", "sbtest".to_owned()),
            ("tables", tables.to_string()),
            ("table-size", rows.to_string()),
            ("threads", threads.to_string()),
            // sysbench in Debian 12 has no warm-up option. The seconds of the warm-up are reported
            // and discarded.
            ("time", (warm_up_s + measure_s).to_string()),
            ("report-interval", "1".to_owned()),
            ("percentile", "95".to_owned()),
            // Concurrent transactions may lock the same rows in different order.
            ("mysql-ignore-errors", "1213,1020,1205".to_owned()),
        ] {
            command.push(format!("--{key}={value}"));
        }
        command.push(verb.to_owned());
        command
    }
}

/// Parses a line such as `[ 1s ] thds: 4 tps: 120.00 … lat (ms,95%): 47.47 …` for each second, and
/// the summary. Seconds of the warm-up are omitted; the percentile is the median of the remaining
/// seconds.
fn read(output: &str, warm_up_s: u64) -> Result<TransactionResult> {
    let number_after = |line: &str, keyword: &str| -> Option<f64> {
        let rest = line.split_once(keyword)?.1.trim_start();
        let end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    };
    let parse_second = |line: &str| -> Option<(f64, f64, f64)> {
        let line = line.trim_start().strip_prefix('[').map(|_| line)?;
        Some((
            number_after(line, "[")?,
            number_after(line, "tps:")?,
            number_after(line, "(ms,95%):")?,
        ))
    };
    let after = |(at_s, _, _): &(f64, f64, f64)| *at_s > warm_up_s as f64;
    let seconds: Vec<(f64, f64, f64)> =
        output.lines().filter_map(parse_second).filter(after).collect();
    let rates: Vec<f64> = seconds.iter().map(|(_, rate, _)| *rate).collect();
    let latencies: Vec<f64> = seconds.iter().map(|(_, _, latency)| *latency).collect();
    let rate = Statistics::from_samples(&rates);
    let errors = output.lines().find_map(|line| number_after(line, "ignored errors:"));
    Ok(TransactionResult {
        rate_by_second: seconds.iter().map(|(at_s, rate, _)| (*at_s, *rate)).collect(),
        transactions_per_s: rate
            .with_context(|| format!("sysbench reported no second after the warm-up: {output}"))?
            .mean,
        p95_ms: Statistics::from_samples(&latencies).map_or(0.0, |statistics| statistics.median),
        errors: errors.unwrap_or(0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_sysbench_is_parsed() {
        let output = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\n\
            [ 1s ] thds: 4 tps: 120.50 qps: 2475.04 (r/w/o: 1735.53/494.57/244.95) lat (ms,95%): 47.47 err/s: 0.00 reconn/s: 0.00\n\
            [ 2s ] thds: 4 tps: 131.00 qps: 2623.96 (r/w/o: 1836.97/524.99/262.00) lat (ms,95%): 44.17 err/s: 0.00 reconn/s: 0.00\n\
            SQL statistics:\n    transactions:                        252    (125.63 per sec.)\n\
            \u{20}   ignored errors:                      3      (0.10 per sec.)\n\
            Latency (ms):\n         95th percentile:                       45.79\n";
        let answered = read(output, 0).unwrap();
        assert_eq!(answered.rate_by_second, [(1.0, 120.5), (2.0, 131.0)]);
        assert_eq!(
            (answered.transactions_per_s, answered.p95_ms, answered.errors),
            (125.75, 45.82, 3.0)
        );
        assert_eq!(read(output, 1).unwrap().transactions_per_s, 131.0);
        assert!(
            read("FATAL: unable to connect", 0)
                .unwrap_err()
                .to_string()
                .contains("unable to connect")
        );
    }
}
