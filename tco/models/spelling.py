"""Spellings of the keys of a `config.json`, structural keys and harmless ones."""

from __future__ import annotations

# spellings of one figure, over releases of the Transformers library and authors
_GROUPS: tuple[tuple[str, ...], ...] = (
    ("hidden_size", "n_embd", "d_model", "model_dim"),
    ("num_hidden_layers", "num_layers", "n_layers", "n_layer"),
    ("vocab_size", "padded_vocab_size"),
    ("num_attention_heads", "n_heads", "n_head"),
    (
        "num_key_value_heads",
        "num_kv_heads",
        "n_kv_heads",
        "n_head_kv",
        "num_attention_groups",
        "num_query_groups",
        "multi_query_group_num",
    ),
    ("head_dim", "attention_head_dim", "kv_channels"),
    (
        "max_position_embeddings",
        "max_seq_len",
        "max_sequence_length",
        "model_max_length",
        "seq_length",
        "n_positions",
    ),
    ("sliding_window", "sliding_window_size", "attention_window_size"),
    ("layer_types", "layers_block_type", "attention_types", "mixer_types"),
    (
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "num_routed_experts",
        "moe_num_experts",
        "moe_num_routed_experts",
        "num_moe_experts",
    ),
    (
        "num_experts_per_tok",
        "num_experts_per_token",
        "moe_topk",
        "moe_top_k",
        "moe_k",
        "top_k_experts",
        "num_activated_experts",
        "num_experts_activated",
        "num_selected_experts",
        "experts_per_token",
        "n_experts_per_token",
    ),
    (
        "n_shared_experts",
        "num_shared_experts",
        "num_shared_expert",
        "moe_num_shared_experts",
        "n_shared_expert",
    ),
    (
        "moe_intermediate_size",
        "expert_ffn_hidden_size",
        "moe_ffn_hidden_size",
        "expert_intermediate_size",
        "expert_hidden_size",
    ),
    (
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "share_expert_dim",
        "shared_expert_dim",
        "shared_experts_intermediate_size",
        "shared_expert_ffn_hidden_size",
    ),
    (
        "first_k_dense_replace",
        "num_dense_layers",
        "first_k_dense_layers",
        "n_dense_layers",
        "num_first_dense_layers",
        "first_num_dense_layers",
        "n_dense_first_layers",
    ),
    ("moe_layer_freq", "moe_layer_frequency"),
    ("moe_latent_size", "routed_expert_hidden_size"),
    ("rope_parameters", "rope_scaling"),
    ("attn_output_gate", "attention_output_gate", "use_output_gate"),
    ("qkv_bias", "use_qkv_bias", "add_qkv_bias", "attention_qkv_bias"),
    ("use_qk_norm", "qk_norm", "qk_layernorm", "use_qk_layernorm"),
    ("attention_bias", "use_attention_bias"),
    ("hidden_act", "hidden_activation", "mlp_hidden_act", "activation_function"),
    ("mamba_num_heads", "mamba_n_heads", "mamba_heads"),
    ("mamba_head_dim", "mamba_d_head"),
    ("mamba_n_groups", "n_groups", "mamba_num_groups"),
    ("ssm_state_size", "mamba_d_state", "mamba_state_dim"),
    ("conv_kernel", "mamba_d_conv"),
    ("expert_layer_period", "moe_every_n_layers"),
    ("torch_dtype", "dtype"),
)
# spellings of each key, besides itself
SPELLINGS: dict[str, tuple[str, ...]] = {
    config_key: tuple(spelling for spelling in group if spelling != config_key)
    for group in _GROUPS
    for config_key in group
}
# how many layers predict further tokens
PREDICTION_KEYS = (
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "mtp_num_layers",
    "num_mtp_modules",
    "num_mtp_layers",
    "num_mtp_heads",
    "n_mtp_layers",
    "mtp_layers",
    "num_nextn_layers",
    "nextn_layers",
)
# sections of a multimodal model that hold its language model
TEXT_SECTIONS = ("text_config", "llm_config", "language_config", "thinker_config", "language_model")
# parts of a key's name that speak of the structure of a model
STRUCTURAL_WORDS = (
    "experts",
    "layers",
    "sparse",
    "mtp",
    "nextn",
    "window",
    "share",
    "latent",
    "heads",
    "quant",
    "rope",
)
# structural keys that no word tells
NAMED_STRUCTURE = ("block_configs", "mlp_layer_types", "layer_types", "mlp_only_layers")
# patterns of keys that hold such a word, and change no count and no time
HARMLESS_KEYS = (
    # positions: angles of the rotation, and which layers are rotated
    "*rope_theta*",
    "*rope_interleave*",
    "*rope_head_dim",
    "rope_local_base_freq",
    "rope_ratio",
    "rope_pct",
    "rope_type",
    "rope_mode",
    "rope_dim",
    "use_rope*",
    "*no_rope*",
    # of no effect where `use_sliding_window` is off, and read where it is on
    "max_window_layers",
    # how experts are chosen and computed
    "num_expert_group*",
    "*shared_expert_overlap",
    "experts_implementation",
    "shared_expert_combination_strategy",
    "shared_expert_sink",
    "swiglu_limits_shared",
    # which blocks of keys an indexer scores, of as many as are attended to
    "use_sparse_attention",
    "sparse_score_type",
    "sparse_init_block",
    "sparse_local_block",
    "sparse_disable_index_value",
    # passes of a draft head
    "use_mtp",
    "mtp_hidden_states_first",
    "index_share_for_mtp_iteration",
    "mtp_transformer_layers",
    "*mtp_loss*",
    "mtp_use_dedicated_embeddings",
    # training and saving
    "pruned_heads",
    "num_reward_heads",
    "*pre_quantization_dtype",
)
