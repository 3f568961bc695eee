//! Command `suimon lab run`.

use std::path::PathBuf;
use std::process;
use std::time::SystemTime;

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use suimon_lab_experiments::{Experiment, free_mib};
use suimon_lab_run::{FORMAT_VERSION, LocalizedText, Run, RunOrigin};
use suimon_rig::{StopSignal, sweep_leftovers};

use crate::exit::{RunInterrupted, RunRejected};
use crate::machine;
use crate::output::print;
use crate::plan::{Plan, Scale};
use crate::profile::PERF;
use crate::report;
use crate::results::{ResultsFolder, RunFolder};
use crate::runner::Runner;
use crate::shared_flags::{ResultsFlags, WORK_FOLDER_DEFAULT};
use crate::simulate;
use crate::supervision;

/// Free space in MiB that the results of a run require.
const RESULTS_MIB: u64 = 64;

/// Arguments of `run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunFlags {
    /// Plans to run: names of shipped plans (`suimon lab list`), or paths of plan files.
    #[arg(required_unless_present = "resume", value_name = "PLAN")]
    plans: Vec<String>,
    /// Duration and size of the experiment.
    #[arg(long, value_enum, default_value_t)]
    scale: Scale,
    /// Number of repetitions of each case, 1 to 1000; as many as the confidence interval requires,
    /// within the limits of the plan, if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: Option<u32>,
    /// Measure CPU time by module: perf samples all CPUs 499 times per second during measurements,
    /// which itself costs some CPU time.
    #[arg(long, conflicts_with = "simulated")]
    profile: bool,
    /// Run in the simulator, at the scale of the publication, instead of on this host.
    #[arg(long, conflicts_with = "resume")]
    simulated: bool,
    /// Id of an interrupted run to continue, as shown by `suimon lab list --runs`.
    #[arg(long, value_name = "RUN", conflicts_with = "plans")]
    resume: Option<String>,
    /// Folder for disks and other large files of the experiment, which are removed at its end.
    #[arg(long, value_name = "DIR", default_value = WORK_FOLDER_DEFAULT)]
    work_folder: PathBuf,
    /// Print the ids of the runs as JSON when they have ended.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    results: ResultsFlags,
}

impl RunFlags {
    pub(crate) fn run(self) -> Result<()> {
        let results = self.results.folder();
        if self.simulated {
            return self.simulate(&results);
        }
        // All plans are checked before the first run, so that a mistake is reported at once instead
        // of hours later.
        let plans: Vec<Plan> = self
            .plans
            .iter()
            .map(|name| Plan::find(name))
            .collect::<Result<_>>()
            .map_err(|error| error.context(RunRejected))?;
        if let Some(status) = supervision::supervise()? {
            process::exit(status.code().unwrap_or(1));
        }
        let stop = StopSignal::new()?;
        sweep_leftovers();
        let mut ids = Vec::new();
        if let Some(name) = &self.resume {
            let folder = results.find(name)?;
            ensure!(!folder.is_complete(), "run {} is complete and cannot be resumed", folder.id());
            let run = folder.load()?;
            ensure!(
                run.origin == RunOrigin::Real,
                "run {} is simulated and cannot be resumed; run it again",
                folder.id()
            );
            self.go_on(&folder, run, &stop)?;
            ids.push(folder.id());
        }
        for plan in plans {
            let folder = self.begin(&plan, &results)?;
            let run = folder.load()?;
            self.go_on(&folder, run, &stop)?;
            ids.push(folder.id());
        }
        self.print_results(&results, &ids)
    }

    /// Checks the plan's requirements and creates the folder of a run.
    fn begin(&self, plan: &Plan, results: &ResultsFolder) -> Result<RunFolder> {
        let experiment = plan.experiment(self.scale)?;
        self.check_requirements(plan, experiment.as_ref(), self.profile)?;
        let folder = results.create_run_folder(&plan.header.id)?;
        if let Some(free) = free_mib(folder.path()).filter(|free| *free < RESULTS_MIB) {
            return Err(anyhow!(
                "{} has {free} MiB of free space, and results may need {RESULTS_MIB} MiB; name \
                 another folder with --results",
                folder.path().display()
            )
            .context(RunRejected));
        }
        let run = Run {
            format_version: FORMAT_VERSION,
            id: folder.id(),
            plan_text: plan.text.clone(),
            origin: RunOrigin::Real,
            scale: self.scale.name().to_owned(),
            started_at: timestamp(),
            duration_s: 0.0,
            profiles: self.profile,
            command: self.command(plan),
            machine: machine::examine(),
            setup: experiment.setup(),
            cases: experiment.cases(),
            measures: experiment.measures(),
            repetitions: Vec::new(),
            skipped_work: Vec::new(),
            aborted_reason: None,
            simulated_figures: simulate::figures(plan),
        };
        folder.write_header(&run)?;
        Ok(folder)
    }

    /// Returns the command line that repeats the run.
    fn command(&self, plan: &Plan) -> String {
        let mut command =
            format!("suimon lab run {} --scale {}", self.plan_name(plan), self.scale.name());
        if let Some(count) = self.repetitions {
            command += &format!(" --repetitions {count}");
        }
        if self.profile {
            command += " --profile";
        }
        command
    }

    /// Returns the plan's name as given on the command line.
    fn plan_name(&self, plan: &Plan) -> String {
        let file = self
            .plans
            .iter()
            .find(|name| Plan::find(name).is_ok_and(|known_plan| known_plan.text == plan.text));
        file.cloned().unwrap_or_else(|| plan.header.id.clone())
    }

    fn check_requirements(
        &self,
        plan: &Plan,
        experiment: &dyn Experiment,
        profiles: bool,
    ) -> Result<()> {
        let mut requirements = experiment.requirements();
        requirements.extend(profiles.then_some(PERF));
        let missing: Vec<LocalizedText> =
            requirements.iter().filter_map(|need| need.missing(&self.work_folder)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<&str> = missing.iter().map(|words| words.en.as_str()).collect();
        Err(anyhow!("{}: {}", plan.header.id, missing.join("; ")).context(RunRejected))
    }

    fn go_on(&self, folder: &RunFolder, mut run: Run, stop: &StopSignal) -> Result<()> {
        let _held = folder.lock()?;
        let plan = Plan::parse(&run.plan_text)?;
        let scale = [Scale::Auto, Scale::Quick, Scale::Full]
            .into_iter()
            .find(|scale| scale.name() == run.scale)
            .unwrap_or_default();
        let experiment = plan.experiment(scale)?;
        self.check_requirements(&plan, experiment.as_ref(), run.profiles)?;
        let mut repeat = plan.repetition_policy(scale);
        if let Some(count) = self.repetitions {
            (repeat.min, repeat.max) = (count, count);
        }
        let mut runner = Runner {
            experiment,
            repetition_policy: repeat,
            folder,
            work_folder: &self.work_folder,
            stop,
        };
        runner.run(&mut run)?;
        if run.aborted_reason.is_some() {
            return Err(anyhow!(
                "completed measurements are kept; continue with `suimon lab run --resume {}`",
                folder.id()
            )
            .context(RunInterrupted));
        }
        folder.finish(&run)
    }

    fn simulate(&self, results: &ResultsFolder) -> Result<()> {
        let mut ids = Vec::new();
        for name in &self.plans {
            let plan = Plan::find(name).map_err(|error| error.context(RunRejected))?;
            let folder = results.create_run_folder(&plan.header.id)?;
            let run = simulate::run(&plan, folder.id(), timestamp())?;
            folder.finish(&run)?;
            ids.push(folder.id());
        }
        self.print_results(results, &ids)
    }

    fn print_results(&self, results: &ResultsFolder, ids: &[String]) -> Result<()> {
        // The report is written to the run's folder even if the output is JSON, which does not
        // contain it.
        let summaries: Vec<String> =
            ids.iter().map(|id| report::write_report(results, id)).collect::<Result<_>>()?;
        if self.json {
            return print(&format!("{:#}\n", serde_json::json!({ "runs": ids })));
        }
        summaries.iter().try_for_each(|text| print(text))?;
        Ok(())
    }
}

fn timestamp() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
