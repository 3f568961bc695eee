//! Requests for runs: written by the daemon, carried out by the lab worker.

use std::sync::PoisonError;

use suimon_contract::{ApiError, ErrorCode, LabPlan, LabRequest, LabRequestState, LabRunRequest};
use suimon_lab_run::folder::{REQUESTS_FOLDER, RunRequest};

use super::{Folder, Lab};
use crate::request_list::{is_unfinished, list};
use crate::run_id::printable_id;
use crate::worker::{find_running_worker, read_plans};

/// Largest number of requests that are queued or in progress.
const WAITING_MAX: usize = 16;

impl Lab {
    /// Requests a run.
    ///
    /// # Errors
    /// No worker is running, the plan does not exist, this machine does not meet the plan's
    /// requirements, or too many requests are queued.
    pub fn request_run(
        &self,
        now_ms: u64,
        run_request: &LabRunRequest,
    ) -> Result<LabRequest, ApiError> {
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let refuse = |code, text: String| Err(ApiError::new(code, text).with_resource("lab"));
        let folder = Folder::open(&self.results)?;
        let worker = folder
            .as_ref()
            .map(|lab_folder| find_running_worker(lab_folder, now_ms))
            .transpose()?
            .flatten();
        let (Some(folder), Some(worker)) = (folder, worker) else {
            return refuse(ErrorCode::Unsupported, self.remedy());
        };
        let plans = read_plans(&folder)?;
        let plan = plans
            .iter()
            .find(|plan| plan.id == run_request.plan)
            .ok_or_else(|| unknown_plan(&run_request.plan, &plans))?;
        let at_scale = plan.scales.iter().find(|scale| scale.scale == run_request.scale);
        let missing: Vec<&str> = at_scale
            .iter()
            .flat_map(|scale| &scale.unmet_requirements)
            .map(|missing| missing.en.as_str())
            .collect();
        if !missing.is_empty() {
            let scale = run_request.scale.as_str();
            let text = format!(
                "this machine lacks resources for {} at scale `{scale}`: {}",
                plan.id,
                missing.join("; ")
            );
            return refuse(ErrorCode::Unsupported, text);
        }
        let Some(requests) = folder.open_subfolder(REQUESTS_FOLDER)? else {
            return refuse(ErrorCode::Unsupported, self.remedy());
        };
        let is_open = |lab_request: &LabRequest| is_unfinished(lab_request.state);
        let open = list(&folder, Some(&worker))?.into_iter().filter(is_open).count();
        if open >= WAITING_MAX {
            let text = format!(
                "{open} runs are queued already; withdraw one, or wait until one has ended"
            );
            return refuse(ErrorCode::Conflict, text);
        }
        let request = RunRequest {
            plan_id: run_request.plan.clone(),
            scale: run_request.scale.as_str().to_owned(),
            profile: run_request.profile,
        };
        let bytes = serde_json::to_vec(&request).map_err(|error| {
            ApiError::new(ErrorCode::Internal, error.to_string()).with_resource("lab")
        })?;
        // A second request in the same millisecond takes the next free number.
        for number in now_ms..now_ms.saturating_add(WAITING_MAX as u64) {
            let id = format!("{number:013}");
            if !requests.contains_entry(&format!("{id}.done"))?
                && requests.write_new(&format!("{id}.json"), &bytes)?
            {
                return Ok(LabRequest {
                    id,
                    plan: Some(request.plan_id),
                    scale: Some(run_request.scale),
                    state: LabRequestState::Queued,
                    run_id: None,
                    error: None,
                });
            }
        }
        refuse(ErrorCode::Conflict, "too many requests at a time; retry".to_owned())
    }

    /// Withdraws a queued request, or cancels the run of one in progress. A request that has ended
    /// is unchanged.
    ///
    /// # Errors
    /// The request does not exist, or a file cannot be written.
    pub fn withdraw(&self, now_ms: u64, id: &str) -> Result<LabRequest, ApiError> {
        let lacking = || {
            let text = "there is no such request; `GET /1.0/lab` lists the pending, running and \
                        last ended ones";
            ApiError::new(ErrorCode::NotFound, text)
                .with_resource(format!("lab/{}", printable_id(id)))
        };
        let folder = Folder::open(&self.results)?.ok_or_else(lacking)?;
        let worker = find_running_worker(&folder, now_ms)?;
        let requests = list(&folder, worker.as_ref())?;
        let mut lab_request =
            requests.into_iter().find(|lab_request| lab_request.id == id).ok_or_else(lacking)?;
        let requests = folder.open_subfolder(REQUESTS_FOLDER)?.ok_or_else(lacking)?;
        if !is_unfinished(lab_request.state) {
            return Ok(lab_request);
        }
        if worker.is_none() && !requests.is_locked()? {
            // No worker reads the folder.
            requests.remove(&format!("{id}.json"))?;
            requests.remove(&format!("{id}.stop"))?;
            lab_request.state = LabRequestState::Failed;
            lab_request.error = Some("withdrawn before it started".to_owned());
            return Ok(lab_request);
        }
        requests.write_new(&format!("{id}.stop"), b"")?;
        lab_request.state = LabRequestState::Stopping;
        Ok(lab_request)
    }
}

/// Returns the error of a request that names a plan which does not exist.
fn unknown_plan(plan: &str, plans: &[LabPlan]) -> ApiError {
    let plan_ids: Vec<&str> = plans.iter().map(|plan| plan.id.as_str()).collect();
    let text =
        format!("there is no plan `{}`; the plans are {}", printable_id(plan), plan_ids.join(", "));
    ApiError::new(ErrorCode::UnknownReference, text).with_resource("lab").with_field("plan")
}
