//! Text of rates, for `top --once` and for the screen.

use suimon_contract::Health;

use crate::columns;
use crate::detail_text::storage_state;
use crate::table::{Table, or_dash};
use crate::top::disk_rates::DiskRates;
use crate::top::power_rates::PowerRates;
use crate::top::rates::{PortRates, TeamRates, TopRates};
use crate::top::worker_rates::WorkerRates;
use crate::units;

/// Returns all tables of a view as text.
pub fn render(rates: &TopRates, view: View) -> String {
    let mut text = String::new();
    for (title, table) in tables(rates, view) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(title);
        text.push('\n');
        text.push_str(&table.render());
    }
    text
}

/// Selection of tables to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Rates of ports, disks and workers.
    Rates,
    /// Time of workers by stage.
    Stages,
}

/// Returns the tables with their titles, most important first.
pub fn tables(rates: &TopRates, view: View) -> Vec<(&'static str, Table)> {
    let workers_table = ("Workers", workers(&rates.workers));
    match view {
        View::Rates => {
            let mut tables = vec![("NICs", ports(&rates.nics)), ("Uplinks", ports(&rates.uplinks))];
            if !rates.teams.is_empty() {
                tables.push(("Teams", teams(&rates.teams)));
            }
            if !rates.disks.is_empty() {
                tables.push(("Disks", disks(&rates.disks)));
            }
            tables.push(workers_table);
            tables.push(("Power", power(&rates.power)));
            tables
        }
        View::Stages => {
            vec![("Stages of each worker, % of its time", stages(&rates.workers)), workers_table]
        }
    }
}

const fn health_name(health: Health) -> &'static str {
    match health {
        Health::Up => "up",
        Health::Down => "down",
        Health::Failed => "failed",
    }
}

/// Returns a table with one row: power and work per watt, or the reason why power is unknown.
fn power(power: &PowerRates) -> Table {
    let mut table = Table::new(&columns::TOP_POWER);
    table.add_row([
        power.plan.clone().unwrap_or_else(|| "none".to_owned()),
        power.effect.as_str().to_owned(),
        or_dash(power.milliwatts.map(units::watts)),
        or_dash(power.frames_per_s_per_watt.map(units::count)),
        or_dash(power.disk_requests_per_s_per_watt.map(units::count)),
        power.unavailable_reason.clone().unwrap_or_default(),
    ]);
    table
}

/// Returns a table with each team followed by its members and their shares.
fn teams(teams: &[TeamRates]) -> Table {
    let mut table = Table::new(&columns::TOP_TEAMS);
    let dash = || or_dash(None::<&str>);
    for team in teams {
        table.add_row([
            team.name.to_string(),
            dash(),
            or_dash(team.switch.as_ref()),
            health_name(team.health).to_owned(),
            units::bit_rate(team.rx_bits_per_s),
            dash(),
            units::bit_rate(team.tx_bits_per_s),
            dash(),
        ]);
        for member in &team.members {
            table.add_row([
                team.name.to_string(),
                member.uplink.to_string(),
                dash(),
                health_name(member.health).to_owned(),
                units::bit_rate(member.rx_bits_per_s),
                percent(member.rx_permille),
                units::bit_rate(member.tx_bits_per_s),
                percent(member.tx_permille),
            ]);
        }
    }
    table
}

fn ports(ports: &[PortRates]) -> Table {
    let mut table = Table::new(&columns::TOP_PORTS);
    for port in ports {
        table.add_row([
            port.name.to_string(),
            or_dash(port.switch.as_ref()),
            health_name(port.health).to_owned(),
            units::frame_rate(port.rx_frames_per_s),
            units::bit_rate(port.rx_bits_per_s),
            units::frame_rate(port.tx_frames_per_s),
            units::bit_rate(port.tx_bits_per_s),
            units::count(port.rx_drops_per_s.saturating_add(port.tx_drops_per_s)),
        ]);
    }
    table
}

/// Returns a table of disks. Guaranteed, demanded and delivered rates are normalised operations per
/// second over 5 s.
fn disks(disks: &[DiskRates]) -> Table {
    let mut table = Table::new(&columns::TOP_DISKS);
    for disk in disks {
        table.add_row([
            disk.name.to_string(),
            disk.store.to_string(),
            storage_state(disk.state, disk.stale, None),
            units::count(disk.reads_per_s),
            units::binary_bytes(disk.read_bytes_per_s),
            units::count(disk.writes_per_s),
            units::binary_bytes(disk.written_bytes_per_s),
            or_dash(disk.latency_ns.map(units::latency)),
            or_dash(disk.qos_wait_ns.map(units::latency)),
            units::count(disk.guaranteed_iops),
            units::count(disk.demand_iops),
            units::count(disk.delivered_iops),
        ]);
    }
    table
}

fn workers(workers: &[WorkerRates]) -> Table {
    let mut table = Table::new(&columns::TOP_WORKERS);
    for worker in workers {
        table.add_row([
            worker.id.to_string(),
            worker.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string()),
            worker.queues.to_string(),
            percent(worker.cpu_permille),
            percent(worker.busy_permille),
            units::frame_rate(worker.frames_per_s),
            units::count(worker.batches_per_s),
            units::count(worker.sleeps_per_s),
        ]);
    }
    table
}

/// Returns a table of workers by stage: first idle time and polling, then the stages of a frame in
/// processing order.
fn stages(workers: &[WorkerRates]) -> Table {
    let mut table = Table::new(&columns::TOP_STAGES);
    for worker in workers {
        let share = |stage| percent(worker.stages_permille.share_permille(stage));
        table.add_row([
            worker.id.to_string(),
            share("idle"),
            share("poll"),
            share("copy_in"),
            share("classify"),
            share("coalesce"),
            share("segment"),
            share("checksum"),
            share("copy_out"),
            share("notify"),
        ]);
    }
    table
}

fn percent(permille: u64) -> String {
    format!("{}.{}", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use super::{TopRates, View};
    use crate::top::example::example;

    #[test]
    fn a_disk_whose_worker_does_not_respond_is_marked() {
        let mut rates = example();
        let row = |rates: &TopRates| {
            let text = super::render(rates, View::Rates);
            text.lines().find(|line| line.starts_with("web   fast")).map(str::to_owned).unwrap()
        };
        assert!(row(&rates).starts_with("web   fast   ready  "), "{}", row(&rates));
        rates.disks[0].stale = true;
        assert!(row(&rates).starts_with("web   fast   ready (stale)  "), "{}", row(&rates));
    }

    #[test]
    fn rates_are_shown_with_units() {
        insta::assert_snapshot!(super::render(&example(), View::Rates), @r"
        NICs
        NAME  SWITCH  HEALTH         RX     RX BIT/S         TX     TX BIT/S  DROPS/S
        new   lan     up          0 fps      0 bit/s      0 fps      0 bit/s        0
        web   lan     up      1.25 Mfps  10.0 Gbit/s  2.50 Mfps  30.0 Gbit/s    125 k

        Uplinks
        NAME   SWITCH  HEALTH         RX     RX BIT/S         TX     TX BIT/S  DROPS/S
        spare  lan     up          0 fps      0 bit/s      0 fps      0 bit/s        0
        wan    lan     up      1.00 kfps  8.00 Mbit/s  2.00 kfps  24.0 Mbit/s      100

        Teams
        NAME  MEMBER  SWITCH  HEALTH     RX BIT/S   RX %     TX BIT/S   TX %
        both  –       lan     up      8.00 Mbit/s      –  24.0 Mbit/s      –
        both  wan     –       up      8.00 Mbit/s  100.0  24.0 Mbit/s  100.0
        both  spare   –       up          0 bit/s    0.0      0 bit/s    0.0

        Disks
        NAME  STORE  STATE  READS/S    READ/S  WRITES/S  WRITTEN/S  LATENCY  QOS WAIT  GUARANTEED  DEMAND  DELIVERED
        web   fast   ready     1000  3.91 MiB       500   7.81 MiB   150 µs    250 µs        1500    4000       2000

        Workers
        ID  CPU  QUEUES  CPU %  BUSY %     FRAMES  BATCHES/S  SLEEPS/S
         0    3       4   75.0    75.0  7.50 Mfps      750 k         0

        Power
        PLAN      IN EFFECT   WATTS  FRAMES/S PER W  REQUESTS/S PER W  REASON
        balanced  full       42.0 W           179 k                47
        ");
    }

    #[test]
    fn stages_are_shares_of_a_workers_time() {
        insta::assert_snapshot!(super::render(&example(), View::Stages), @r"
        Stages of each worker, % of its time
        ID  IDLE  POLL  COPY IN  CLASSIFY  COALESCE  SEGMENT  CHECKSUM  COPY OUT  NOTIFY
         0  25.0   2.3     18.8       7.5       3.8      0.0       1.5      37.5     3.8

        Workers
        ID  CPU  QUEUES  CPU %  BUSY %     FRAMES  BATCHES/S  SLEEPS/S
         0    3       4   75.0    75.0  7.50 Mfps      750 k         0
        ");
    }
}
