// Graph: a model's forward pass as a list of nodes over values, from which the backward pass follows. Built anew for a batch;
// holds all activations. Nodes put phases into a job and compute nothing themselves.
//
// Start reading at Graph::Linear: every operation makes its node and the value it computes. After a failure (no memory, sizes
// that do not fit) status() says what it was, and everything that is added later is null.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <new>
#include <utility>

#include "headwise/activation.h"
#include "headwise/attention.h"
#include "headwise/cross_entropy.h"
#include "headwise/job.h"
#include "headwise/kv_cache.h"
#include "headwise/norm.h"
#include "headwise/parameter_arena.h"
#include "headwise/rotary.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// [rows, width], row-major. A parameter's gradient is added to; another's is complete once the backward pass has gone by its
// node. Null gradient: none is wanted.
struct Value {
  float* data = nullptr;
  float* gradient = nullptr;
  std::int32_t rows = 0;
  std::int32_t width = 0;
  bool is_parameter = false;
  bool written = false;  // while the backward pass is put together: somebody has stored into `gradient`

  std::int64_t count() const { return std::int64_t{rows} * width; }
};

enum class GraphNorm : std::int32_t { kLayer = 0, kRms = 1, kBatch = 2 };

struct NormParameters {
  GraphNorm kind = GraphNorm::kLayer;
  float epsilon = 1e-5F;
  Value* gain = nullptr;
  Value* shift = nullptr;         // null with kRms
  float* running_mean = nullptr;  // kBatch
  float* running_variance = nullptr;
};

class Graph;

// One operation. Its arguments live in it, since phases borrow them.
class GraphNode {
 public:
  virtual ~GraphNode() = default;
  virtual Status Forward(Graph& graph, Job& job) = 0;
  virtual Status Backward(Graph& graph, Job& job) = 0;
};

class Graph {
 public:
  // `training`: dropout drops, batch norm uses its batch, gradients can be had. Dropout is a function of seed, step, the
  // node's number and the element.
  // Nodes are counted from `first_node`: graphs of one step that are to drop other elements begin elsewhere.
  Graph(ThreadPool& pool, bool training, std::uint64_t seed, std::int64_t step, std::uint32_t first_node = 0)
      : pool_(pool), training_(training), seed_(seed), step_(step), nodes_(first_node) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Names the module that the operations from here on belong to; copied.
  void Enter(const char* module);

  // Data from outside, [rows, width]; with a gradient when `gradient` is given.
  Value* Given(const float* data, std::int32_t rows, std::int32_t width, float* gradient = nullptr);
  // Rows first ... first + rows - 1 of a parameter of rank 2, or elements of one of rank 1; rows < 0: all.
  Value* Parameter(const ParameterArena& arena, std::int32_t index, std::int32_t first = 0, std::int32_t rows = -1);

  // y = x W^T + b with W [out, in] as PyTorch has it; bias null: none. `into` null, or where y is to lie.
  Value* Linear(Value* x, Value* weight, Value* bias, float* into = nullptr);
  Value* Normalize(Value* x, const NormParameters& parameters);
  Value* Activate(Value* x, ActivationKind kind);
  Value* Add(Value* a, Value* b);
  Value* Dropout(Value* x, float rate);
  // y[r] = table[ids[r]] * scale + positions[r mod length]; `positions` null: none. Borrows ids.
  Value* Embed(Value* table, const std::int32_t* ids, std::int32_t rows, float scale, Value* positions,
               std::int32_t length);
  // y[r] = x[r] + positions[r mod length]; `positions` null: x itself.
  Value* AddPositions(Value* x, Value* positions, std::int32_t length);
  // Heads side by side, turned by their positions: `options` brings batch, heads, rows (which stand at 0 ... rows - 1), dim,
  // base, interleaved and scaling; the rest is set here.
  Value* Rotate(Value* x, const RotaryArgs& options);
  // Heads side by side: q [B L, H D], k and v [B S, G D], without training also [S, G D], which the batch then shares.
  // `options` brings batch, heads, kv_heads, queries, keys, the scale, masks, and room for weights; its tensors and strides
  // are set here.
  Value* Attend(Value* q, Value* k, Value* v, const AttentionArgs& options, float dropout);
  // Without training: appends k and v [B L, G D] to the cache, and attends to all that is in it; keys are the length then.
  Value* AttendCached(Value* q, Value* k, Value* v, const AttentionArgs& options, KeyValueCache& cache);
  // Without training: rows length - 1, 2 length - 1 and so on of x.
  Value* LastRows(Value* x, std::int32_t length);
  // Borrows targets [rows]. `divisor` as in CrossEntropyArgs.
  CrossEntropyLoss* Loss(Value* logits, const std::int32_t* targets, std::int32_t ignored, float smoothing,
                         std::int32_t divisor);

  const Status& status() const { return status_; }
  Status Forward(Job& job);
  // After Loss, or after the caller has filled `gradient` of a value and marked it written.
  Status Backward(Job& job);
  // Once the job is done: the first module whose output is not finite, going forward; if all are, the first that makes
  // gradients that are not finite of finite ones, going backward. Null when there is none.
  const char* NotFinite() const;

  // For nodes.
  ThreadPool& pool() { return pool_; }
  bool training() const { return training_; }
  float* Floats(std::int64_t count);
  std::uint64_t seed() const { return seed_; }
  std::int64_t step() const { return step_; }
  // Where to put the gradient of `value`: null when none is wanted; *add says whether it is to be added there.
  static float* Into(Value* value, bool* add);
  // The same for operations that can only store: they store into what this returns, and AddStored after their phases.
  float* StoreFor(Value* value, bool* add);
  Status AddStored(Value* value, const float* stored, bool add, Job& job);

  template <class T, class... Args>
  T* Make(Args&&... args) {
    void* place = Take(sizeof(T));
    return place == nullptr ? nullptr : new (place) T(std::forward<Args>(args)...);
  }

 private:
  static constexpr int kMostInputs = 3;
  // What a node computes of what, for NotFinite. A node that hands gradients on as they are makes none.
  struct Link {
    GraphNode* node;
    Link* before;
    Link* next;
    const char* module;
    const Value* output;
    const Value* inputs[kMostInputs];
    bool hands_on;
  };
  struct Block {
    Block* before;
  };

  void* Take(std::uint64_t bytes);
  Value* NewValue(std::int32_t rows, std::int32_t width, float* data = nullptr);
  // Takes the node into the list; `output`, or null when it could not be made.
  Value* Append(GraphNode* node, Value* output, std::initializer_list<const Value*> inputs, bool hands_on = false);
  bool Fits(bool condition, const char* argument);

  ThreadPool& pool_;
  bool training_;
  std::uint64_t seed_;
  std::int64_t step_;
  std::uint32_t nodes_;
  const char* module_ = "";
  Status status_;
  Block* blocks_ = nullptr;
  Link* first_ = nullptr;
  Link* last_ = nullptr;
};

}  // namespace headwise
