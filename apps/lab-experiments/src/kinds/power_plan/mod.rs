//! Kind `power-plan`: transactions under each power plan of `suimon power`.
//!
//! A case is a plan; each repetition measures all loads in sequence.

mod sessions;
mod settings;
mod testbed;

use anyhow::Result;
use suimon_lab_run::{Case, LocalizedText, Measure, MeasureDirection, Repetition};

use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::requirement::{Requirement, daemon, programs};
pub(crate) use settings::Settings;
use testbed::{Load, Testbed};

/// Experiment of kind `power-plan`.
pub(crate) struct PowerPlan {
    settings: Settings,
    /// Setup that the first repetition creates and later ones use again.
    testbed: Option<Testbed>,
}

impl PowerPlan {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings, testbed: None })
    }
}

impl Experiment for PowerPlan {
    fn requirements(&self) -> Vec<Requirement> {
        [
            daemon(),
            vec![Requirement::SuimonProgram("examples/disk_speed")],
            programs(&[
                ("fio", "fio"),
                ("ip", "iproute2"),
                ("ping", "iputils-ping"),
                ("curl", "curl"),
            ]),
            vec![Requirement::FreeMib(self.settings.disk_mib + 64)],
        ]
        .concat()
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let Settings { sessions, window_ms, disk_mib, .. } = self.settings;
        vec![
            LocalizedText::new(
                format!(
                    "Three loads for {window_ms} ms each: {sessions} TCP connections from two \
                     namespace guests to the outside that exchange single bytes; random reads of \
                     4 KiB of a disk of {disk_mib} MiB, one at a time, by a sleeping front-end \
                     over vhost-user and by fio over NBD; and no load."
                ),
                format!(
                    "ネームスペースのゲスト 2 台から外への TCP 接続 {sessions} 本 (1 バイト送り 1 バイト返す)、{disk_mib} MiB のディスクの 4 \
                     KiB ランダムリードを 1 つずつ、割り込みまで眠るフロントエンドによる vhost-user と fio による NBD \
                     で、そして無負荷を、それぞれ {window_ms} ms 測ります。"
                ),
            ),
            LocalizedText::new(
                "One suimond with two unpinned workers and an uplink whose queues VMQ places. CPU \
                 time is that of all threads of the daemon per completed operation; power is that \
                 of RAPL's packages and memory, where the machine has them.",
                "suimond は 1 つで、CPU に固定しないワーカー 2 個と、VMQ がキューを配置するアップリンクを持ちます。CPU \
                 時間はデーモンの全スレッドの合計を処理数で割ったものです。電力は RAPL のパッケージとメモリの値で、マシンにある場合だけ測ります。",
            ),
        ]
    }

    fn cases(&self) -> Vec<Case> {
        // The time per case: the loads, the start and end of fio, and the time until queues are
        // assigned.
        let seconds = self.settings.window_ms as f64 / 1000.0 * Load::ALL.len() as f64 + 4.0;
        let plans = self.settings.plans.iter();
        plans
            .map(|plan| Case::new(plan.clone(), LocalizedText::untranslated(plan.clone()), seconds))
            .collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let mut measures = Vec::new();
        for load in Load::ALL {
            let LocalizedText { en, ja } = load.description();
            let mut add = |id: &str,
                           (of_en, of_ja): (&str, &str),
                           unit: &str,
                           better: MeasureDirection| {
                let words = LocalizedText::new(format!("{of_en}, {en}"), format!("{of_ja}、{ja}"));
                measures.push(Measure::new(&format!("{}-{id}", load.id()), words, unit, better));
            };
            if load != Load::Idle {
                add("rate", ("transactions", "トランザクション"), "/s", MeasureDirection::Higher);
                let us_per_operation =
                    ("the daemon's CPU time per operation", "1 件あたりのデーモンの CPU 時間");
                add("cpu-each", us_per_operation, "µs", MeasureDirection::Lower);
            }
            let cpu = ("the daemon's CPU time, share of a CPU", "デーモンの CPU 使用率");
            add("cpu", cpu, "%", MeasureDirection::Lower);
            add(
                "watts",
                ("power of packages and memory", "パッケージとメモリの電力"),
                "W",
                MeasureDirection::Lower,
            );
        }
        measures
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let testbed = match self.testbed.take() {
            Some(testbed) => testbed,
            None => Testbed::set_up(&self.settings, environment)?,
        };
        let mut part = Repetition::default();
        for missing in testbed.set_plan(&case.id)? {
            part.notes.push(LocalizedText::new(
                format!("{}: not available on this machine: {missing}", case.id),
                format!("{}: このマシンにはありません: {missing}", case.id),
            ));
        }
        let profile = environment.start_profiling();
        for load in Load::ALL {
            environment.check_not_stopped()?;
            let load_result = testbed.measure(load, environment)?;
            let values = [
                ("rate", load_result.transactions_per_second),
                ("cpu-each", load_result.cpu_us_per_transaction),
                ("cpu", Some(load_result.cpu_percent)),
                ("watts", load_result.watts),
            ];
            for (id, value) in values {
                if let Some(value) = value {
                    part.set_value(&format!("{}-{id}", load.id()), value);
                }
            }
        }
        drop(profile);
        self.testbed = Some(testbed);
        Ok(part)
    }
}
