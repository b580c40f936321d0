// Graph: the graph's memory, its list of nodes, and the operations that make them.
#include "graph/graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/decoding_nodes.h"
#include "graph/nodes.h"
#include "graph/rotate_node.h"
#include "memory/aligned.h"
#include "nn/element_blocks.h"

namespace headwise {
namespace {

struct AddContext {
  const float* from;
  float* to;
  std::int64_t count;
};

void AddElements(void* context, std::int64_t index, int /*thread*/) {
  const auto& add = *static_cast<const AddContext*>(context);
  const ElementRange range = ElementsOfBlock(index, add.count);
  for (std::int64_t i = range.begin; i < range.end; ++i) add.to[i] += add.from[i];
}

// True for null.
bool AllFinite(const float* values, std::int64_t count) {
  return values == nullptr || std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

// Heads of q, k and v are of sizes that go together, and there are as many keys as values.
bool FitHeads(const Value& q, const Value& k, const Value& v, const AttentionArgs& options) {
  return options.heads > 0 && options.kv_heads > 0 && k.rows == v.rows && q.width % options.heads == 0 &&
         v.width % options.kv_heads == 0 && k.width == q.width / options.heads * options.kv_heads;
}

}  // namespace

Graph::~Graph() {
  for (Link* link = last_; link != nullptr; link = link->before) link->node->~GraphNode();
  while (blocks_ != nullptr) {
    Block* block = blocks_;
    blocks_ = block->before;
    FreeAligned(block);
  }
}

void* Graph::Take(std::uint64_t bytes) {
  if (!status_.ok()) return nullptr;
  const std::uint64_t all = CheckedAdd(AlignUp(sizeof(Block)), AlignUp(bytes));
  auto* block = static_cast<unsigned char*>(AllocateAligned(all));
  if (block == nullptr) {
    status_ = Status::OutOfMemory(all);
    return nullptr;
  }
  blocks_ = new (block) Block{blocks_};
  return block + AlignUp(sizeof(Block));
}

float* Graph::Floats(std::int64_t count) {
  return static_cast<float*>(Take(CheckedMul(static_cast<std::uint64_t>(count), sizeof(float))));
}

bool Graph::Fits(bool condition, const char* argument) {
  if (status_.ok() && !condition) status_ = Status::InvalidShape(argument);
  return status_.ok();
}

Value* Graph::Append(GraphNode* node, Value* output, std::initializer_list<const Value*> inputs, bool hands_on) {
  if (node == nullptr) return nullptr;
  auto* link = Make<Link>(Link{node, last_, nullptr, module_, output, {}, hands_on});
  if (link == nullptr) {
    node->~GraphNode();
    return nullptr;
  }
  std::copy(inputs.begin(), inputs.end(), link->inputs);
  (last_ != nullptr ? last_->next : first_) = link;
  last_ = link;
  ++nodes_;
  return output;
}

void Graph::Enter(const char* module) {
  const std::size_t bytes = std::strlen(module) + 1;
  auto* name = static_cast<char*>(Take(bytes));
  if (name == nullptr) return;
  std::memcpy(name, module, bytes);
  module_ = name;
}

Value* Graph::NewValue(std::int32_t rows, std::int32_t width, float* data) {
  auto* value = Make<Value>();
  if (value == nullptr) return nullptr;
  value->rows = rows;
  value->width = width;
  value->data = data != nullptr ? data : Floats(value->count());
  if (training_) value->gradient = Floats(value->count());
  return status_.ok() ? value : nullptr;
}

Value* Graph::Given(const float* data, std::int32_t rows, std::int32_t width, float* gradient) {
  auto* value = Make<Value>();
  if (value == nullptr) return nullptr;
  value->data = const_cast<float*>(data);
  value->gradient = gradient;
  value->rows = rows;
  value->width = width;
  return value;
}

Value* Graph::Parameter(const ParameterArena& arena, std::int32_t index, std::int32_t first, std::int32_t rows) {
  if (status_.ok() && index < 0) status_ = Status::InvalidValue("parameter");
  if (!status_.ok()) return nullptr;
  const ParameterArena::Parameter& parameter = arena.parameter(index);
  const bool flat = parameter.rank == 1;
  const std::int32_t width = flat ? 1 : parameter.shape[1];
  if (rows < 0) rows = parameter.shape[0];
  auto* value = Make<Value>();
  if (value == nullptr) return nullptr;
  const std::int64_t offset = std::int64_t{first} * width;
  value->data = arena.value(index) + offset;
  value->gradient = training_ && arena.gradients() != nullptr ? arena.gradient(index) + offset : nullptr;
  value->rows = rows;
  value->width = width;
  value->is_parameter = true;
  return value;
}

Value* Graph::Linear(Value* x, Value* weight, Value* bias, float* into) {
  if (!status_.ok() || !Fits(x->width == weight->width, "weight")) return nullptr;
  if (!Fits(bias == nullptr || bias->count() == weight->rows, "bias")) return nullptr;
  Value* y = NewValue(x->rows, weight->rows, into);
  if (y == nullptr) return nullptr;
  return Append(Make<LinearNode>(x, weight, bias, y), y, {x, weight, bias});
}

Value* Graph::Normalize(Value* x, const NormParameters& parameters) {
  if (!status_.ok() || !Fits(parameters.gain->count() == x->width, "gain")) return nullptr;
  Value* y = NewValue(x->rows, x->width);
  const std::int32_t kept = parameters.kind == GraphNorm::kBatch ? x->width : x->rows;
  float* mean = Floats(kept);
  float* inverse = Floats(kept);
  if (inverse == nullptr) return nullptr;
  return Append(Make<NormNode>(x, parameters, y, mean, inverse), y, {x, parameters.gain, parameters.shift});
}

Value* Graph::Activate(Value* x, ActivationKind kind) {
  if (!status_.ok()) return nullptr;
  Value* y = NewValue(x->rows, x->width);
  if (y == nullptr) return nullptr;
  return Append(Make<ActivationNode>(x, kind, y), y, {x});
}

Value* Graph::Add(Value* a, Value* b) {
  if (!status_.ok() || !Fits(a->rows == b->rows && a->width == b->width, "add")) return nullptr;
  Value* y = NewValue(a->rows, a->width);
  if (y == nullptr) return nullptr;
  return Append(Make<AddNode>(a, b, y), y, {a, b}, true);
}

Value* Graph::Dropout(Value* x, float rate) {
  if (!status_.ok()) return nullptr;
  if (!training_ || rate == 0.0F) return x;
  Value* y = NewValue(x->rows, x->width);
  if (y == nullptr) return nullptr;
  return Append(Make<DropoutNode>(x, rate, nodes_, y), y, {x}, true);
}

Value* Graph::Embed(Value* table, const std::int32_t* ids, std::int32_t rows, float scale, Value* positions,
                    std::int32_t length) {
  if (!status_.ok()) return nullptr;
  if (!Fits(positions == nullptr || (positions->width == table->width && length <= positions->rows), "positions")) {
    return nullptr;
  }
  for (std::int32_t row = 0; row < rows; ++row) {
    if (ids[row] >= 0 && ids[row] < table->rows) continue;
    status_ = Status::InvalidValue("ids");
    return nullptr;
  }
  Value* y = NewValue(rows, table->width);
  if (y == nullptr) return nullptr;
  return Append(Make<EmbedNode>(table, ids, scale, positions, length, y), y, {table, positions});
}

Value* Graph::AddPositions(Value* x, Value* positions, std::int32_t length) {
  if (!status_.ok() || positions == nullptr) return x;
  if (!Fits(positions->width == x->width && length <= positions->rows, "positions")) return nullptr;
  Value* y = NewValue(x->rows, x->width);
  if (y == nullptr) return nullptr;
  return Append(Make<PositionNode>(x, positions, length, y), y, {x, positions}, true);
}

Value* Graph::Rotate(Value* x, const RotaryArgs& options) {
  if (!status_.ok()) return nullptr;
  const std::int64_t rows = std::int64_t{options.batch} * options.rows;
  if (!Fits(options.heads > 0 && x->width % options.heads == 0 && x->rows == rows, "rotary")) return nullptr;
  Value* y = NewValue(x->rows, x->width);
  if (y == nullptr) return nullptr;
  return Append(Make<RotateNode>(x, options, y), y, {x}, true);
}

Value* Graph::Attend(Value* q, Value* k, Value* v, const AttentionArgs& options, float dropout) {
  if (!status_.ok()) return nullptr;
  const std::int64_t query_rows = std::int64_t{options.batch} * options.queries;
  std::int64_t key_rows = std::int64_t{options.batch} * options.keys;
  if (!training_ && k->rows == options.keys) key_rows = options.keys;
  if (!Fits(FitHeads(*q, *k, *v, options) && q->rows == query_rows && k->rows == key_rows, "attention")) return nullptr;
  Value* y = NewValue(q->rows, v->width / options.kv_heads * options.heads);
  float* log_sum_exp = Floats(query_rows * options.heads);
  if (log_sum_exp == nullptr) return nullptr;
  return Append(Make<AttendNode>(*this, q, k, v, options, dropout, nodes_, log_sum_exp, y), y, {q, k, v});
}

Value* Graph::AttendCached(Value* q, Value* k, Value* v, const AttentionArgs& options, KeyValueCache& cache) {
  if (!status_.ok()) return nullptr;
  const std::int64_t rows = std::int64_t{options.batch} * options.queries;
  if (!Fits(!training_ && FitHeads(*q, *k, *v, options) && q->rows == rows && k->rows == rows, "attention")) {
    return nullptr;
  }
  Value* y = NewValue(q->rows, v->width / options.kv_heads * options.heads);
  if (y == nullptr) return nullptr;
  return Append(Make<CachedAttendNode>(q, k, v, options, cache, y), y, {q, k, v});
}

Value* Graph::LastRows(Value* x, std::int32_t length) {
  if (!status_.ok() || !Fits(!training_ && length > 0 && x->rows % length == 0, "rows")) return nullptr;
  if (length == 1) return x;
  Value* y = NewValue(x->rows / length, x->width);
  if (y == nullptr) return nullptr;
  return Append(Make<LastRowsNode>(x, length, y), y, {x}, true);
}

CrossEntropyLoss* Graph::Loss(Value* logits, const std::int32_t* targets, std::int32_t ignored, float smoothing,
                              std::int32_t divisor) {
  if (!status_.ok()) return nullptr;
  float* row_loss = Floats(logits->rows);
  auto* row_correct = reinterpret_cast<std::uint8_t*>(Floats((logits->rows + 3) / 4));
  if (row_correct == nullptr) return nullptr;
  CrossEntropyArgs args;
  args.rows = logits->rows;
  args.classes = logits->width;
  args.smoothing = smoothing;
  args.ignored = ignored;
  args.divisor = divisor;
  args.logits = logits->data;
  args.targets = targets;
  args.row_loss = row_loss;
  args.row_correct = row_correct;
  args.d_logits = logits->gradient;
  logits->written = true;
  auto* node = Make<LossNode>(args);
  Append(node, nullptr, {logits});
  return status_.ok() ? &node->loss() : nullptr;
}

Status Graph::Forward(Job& job) {
  for (Link* link = first_; link != nullptr && status_.ok(); link = link->next) {
    if (Status status = link->node->Forward(*this, job); !status.ok()) status_ = status;
  }
  return status_;
}

Status Graph::Backward(Job& job) {
  if (!training_) return Status::InvalidValue("training");
  for (Link* link = last_; link != nullptr && status_.ok(); link = link->before) {
    if (Status status = link->node->Backward(*this, job); !status.ok()) status_ = status;
  }
  return status_;
}

const char* Graph::NotFinite() const {
  for (const Link* link = first_; link != nullptr; link = link->next) {
    if (link->output != nullptr && !AllFinite(link->output->data, link->output->count())) return link->module;
  }
  for (const Link* link = last_; link != nullptr; link = link->before) {
    const Value* output = link->output;
    if (link->hands_on || (output != nullptr && !AllFinite(output->gradient, output->count()))) continue;
    for (const Value* input : link->inputs) {
      if (input != nullptr && !AllFinite(input->gradient, input->count())) return link->module;
    }
  }
  return nullptr;
}

float* Graph::Into(Value* value, bool* add) {
  *add = value != nullptr && (value->is_parameter || value->written);
  if (value == nullptr || value->gradient == nullptr) return nullptr;
  value->written = true;
  return value->gradient;
}

float* Graph::StoreFor(Value* value, bool* add) {
  float* into = Into(value, add);
  return into != nullptr && *add ? Floats(value->count()) : into;
}

Status Graph::AddStored(Value* value, const float* stored, bool add, Job& job) {
  if (!add || stored == nullptr) return status_;
  auto* context = Make<AddContext>(AddContext{stored, value->gradient, value->count()});
  if (context == nullptr) return status_;
  return job.AddPhase(ElementBlocks(value->count()), &AddElements, context);
}

}  // namespace headwise
