"""PyTorch with Hugging Face's Olmo3ForCausalLM: forward, cross entropy with z-loss, backward, clipping, fused AdamW."""
import peer

options, size = peer.read_options(__doc__, compile="torch.compile the model and its loss")

import contextlib

import torch
import transformers

torch.set_num_threads(options.threads)
torch.manual_seed(0)
config = transformers.Olmo3Config(
    vocab_size=size["vocab"], hidden_size=size["d_model"], intermediate_size=size["d_ff"], num_hidden_layers=size["n_layers"],
    num_attention_heads=size["n_heads"], num_key_value_heads=size["n_heads"], max_position_embeddings=size["seq_len"],
    sliding_window=size["window"], rms_norm_eps=1e-6, use_cache=False, pad_token_id=None, bos_token_id=None, eos_token_id=None,
    layer_types=["sliding_attention" if peer.window_of(size, i) else "full_attention" for i in range(size["n_layers"])],
    rope_parameters={"rope_type": "default", "rope_theta": 500_000})
model = transformers.Olmo3ForCausalLM(config).float().train()
peer.check_parameters(size, model)
embedding = model.get_input_embeddings().weight
optimizer = torch.optim.AdamW(
    [{"params": [p for p in model.parameters() if p is not embedding], "weight_decay": 0.1}, {"params": [embedding], "weight_decay": 0.0}],
    lr=1e-3, betas=(0.9, 0.95), eps=1e-8, fused=True)


def loss_of(inputs, targets):
    # One log-softmax gives both terms; a second logsumexp over the vocabulary would cost as much again.
    logits = model(inputs).logits.float().flatten(0, 1)
    log_p = torch.log_softmax(logits, -1)
    cross_entropy = torch.nn.functional.nll_loss(log_p, targets.flatten())
    return cross_entropy + 1e-5 * (logits[:, 0] - log_p[:, 0]).square().mean(), cross_entropy.detach()


loss_of = torch.compile(loss_of) if options.compile else loss_of


def step(batch):
    mean = 0.0
    for micro in torch.from_numpy(batch):
        with torch.autocast("cpu", torch.bfloat16) if options.dtype == "bf16" else contextlib.nullcontext():
            loss, cross_entropy = loss_of(micro[:, :-1].contiguous(), micro[:, 1:].contiguous())
        (loss / len(batch)).backward()
        mean += cross_entropy.item() / len(batch)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return mean


peer.run("torch compile" if options.compile else "torch", options, size, step, torch=torch.__version__, transformers=transformers.__version__)
