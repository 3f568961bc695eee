//! Load of tiles: all VMs together, or one VM alone.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_lab_run::Series;
use suimon_rig::{Process, Rig};

use super::score::Rates;
use super::settings::Settings;
use super::testbed::Testbed;
use crate::environment::Environment;
use crate::loads::database::Transactions;
use crate::loads::java::{OrderEntry, OrderLoad};
use crate::loads::web::{Connections, Profile, WebClients};
use crate::sampling::{ResourceUsage, SECOND, Sampler};

/// VMs that have load in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loaded {
    Java,
    Database,
    Web,
    All,
}

/// Rates and used resources of one measurement.
pub(super) struct TilesResult {
    pub(super) tiles: Vec<Rates>,
    /// Number of repeated transactions and failed requests.
    pub(super) errors: f64,
    pub(super) resource_usage: ResourceUsage,
    pub(super) series: Vec<Series>,
}

/// Load generators of a setup.
pub(super) struct Load<'a> {
    pub(super) rig: &'a Rig,
    pub(super) program: &'a OrderEntry,
    pub(super) settings: &'a Settings,
    pub(super) environment: &'a Environment<'a>,
}

/// Client processes of one tile.
#[derive(Default)]
struct ClientProcesses {
    java: Option<Process>,
    database: Option<Process>,
    web: Option<WebClients>,
}

impl Load<'_> {
    /// Returns the rate of each kind of VM while all other VMs are idle, measured on the first
    /// tile.
    pub(super) fn measure_solo(&self, testbed: &mut Testbed) -> Result<Rates> {
        let mut solo_rates = Rates::default();
        for loaded in [Loaded::Java, Loaded::Database, Loaded::Web] {
            let result = self.run(testbed, 1, loaded)?;
            let first = result.tiles.first().context("unknown tile")?;
            solo_rates.java += first.java;
            solo_rates.database += first.database;
            solo_rates.web += first.web;
        }
        let are_there =
            [solo_rates.java, solo_rates.database, solo_rates.web].iter().all(|rate| *rate > 0.0);
        ensure!(
            are_there,
            "a VM completed no work while it was alone ({solo_rates:?}); set a longer duration"
        );
        Ok(solo_rates)
    }

    /// Loads all VMs of all tiles at once.
    pub(super) fn run_all(&self, testbed: &mut Testbed) -> Result<TilesResult> {
        let count = testbed.tiles.len();
        self.run(testbed, count, Loaded::All)
    }

    fn run(&self, testbed: &mut Testbed, count: usize, loaded: Loaded) -> Result<TilesResult> {
        let (orders, transactions) = (self.orders(), self.transactions());
        let mut asking = Vec::new();
        for tile in testbed.tiles.iter().take(count) {
            asking.push(self.begin(tile, &testbed.client, loaded)?);
        }
        self.environment.wait(Duration::from_secs(self.settings.warm_up_s))?;
        // CPU time is profiled under the full load only. The rates of single VMs are only divisors
        // of the score.
        let profile = (loaded == Loaded::All).then(|| self.environment.start_profiling());
        let mut sampler = Sampler::begin(Some(&testbed.daemon))?;
        sampler.sample_for(
            self.environment,
            Duration::from_secs(self.settings.measure_s),
            SECOND,
        )?;
        drop(profile);
        let (sums, series) = (sampler.resource_usage(), sampler.series());
        let mut result =
            TilesResult { tiles: Vec::new(), errors: 0.0, resource_usage: sums, series };
        for (tile, asking) in testbed.tiles.iter_mut().zip(&mut asking) {
            let mut rates = Rates::default();
            if let Some(process) = &mut asking.java {
                rates.java =
                    OrderEntry::finish(process, orders, self.environment)?.operations_per_s;
            }
            if let Some(process) = &mut asking.database {
                let answered = tile.database.finish(process, transactions, self.environment)?;
                rates.database = answered.transactions_per_s;
                result.errors += answered.errors;
            }
            if let Some(clients) = asking.web.take() {
                let web_result = clients.end()?;
                rates.web = web_result.requests_per_s;
                result.errors += web_result.errors;
            }
            result.tiles.push(rates);
        }
        Ok(result)
    }

    fn begin(
        &self,
        tile: &super::testbed::Tile,
        client: &suimon_rig::NamespaceGuest,
        loaded: Loaded,
    ) -> Result<ClientProcesses> {
        let is_loaded = |load: Loaded| loaded == load || loaded == Loaded::All;
        let mut asking = ClientProcesses::default();
        let (rig, from) = (self.rig, &client.namespace);
        if is_loaded(Loaded::Java) {
            let guest = &tile.java.namespace;
            asking.java =
                Some(self.program.start_in(rig, guest, &tile.java_vcpus, self.orders())?);
        }
        if is_loaded(Loaded::Database) {
            asking.database = Some(tile.database.start_load(rig, from, self.transactions())?);
        }
        if is_loaded(Loaded::Web) {
            let seconds = self.settings.warm_up_s + self.settings.measure_s;
            let http = self.settings.connections;
            // One tenth of the requests use HTTPS, as in the simulator.
            let connections = Connections { http, https: http.div_ceil(9) };
            let (to, profile) = (tile.web_guest().address(), Profile::STD_CGI);
            asking.web = Some(WebClients::start(rig, from, &to, profile, connections, seconds)?);
        }
        Ok(asking)
    }

    pub(super) fn transactions(&self) -> Transactions {
        let Settings { threads, tables, rows, warm_up_s, measure_s, .. } = *self.settings;
        Transactions { threads, tables, rows, warm_up_s, measure_s }
    }

    fn orders(&self) -> OrderLoad {
        let Settings { heap_mib, warm_up_s, measure_s, .. } = *self.settings;
        let warehouses = self.settings.vcpus as u32;
        OrderLoad { warehouses, warm_up_s, measure_s, heap_mib, may_use_huge_pages: false }
    }
}
