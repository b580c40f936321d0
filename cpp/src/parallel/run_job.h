// Parallel layer: what every computation's call at once has in common.
#pragma once

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// `add` puts its phases into a job, which is then run.
template <class Add>
Status RunJob(ThreadPool& pool, Add&& add) {
  Job job;
  if (const Status status = add(job); !status.ok()) return status;
  job.Run(pool);
  return Status::Ok();
}

}  // namespace headwise
