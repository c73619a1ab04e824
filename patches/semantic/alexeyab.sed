# Replaces the marks of hooks.cocci by the text of the plain patches. A mark that spatch has broken into lines
# is joined first. This fork's gemm_gpu gets no hook: it takes arrays in CPU memory, for a test of its own.
:join
/AMP_HOOK_[a-z_]*([^;]*$/ { N; s/\n */ /; b join
}
/AMP_HOOK_gemm(gemm_gpu,/d
s/AMP_HOOK_state([a-z]*_network_gpu);/DARKNET_AMP(DARKNET_AMP_ON_GPU)/
s/AMP_HOOK_state(\([a-z]*\)_network[a-z_]*);/DARKNET_AMP(DARKNET_AMP_PASS(darknet_amp_\1))/
s/AMP_HOOK_update(\(.*\));/DARKNET_AMP(if(\1.amp){ darknet_amp_update(\&\1); return; })/
s/AMP_HOOK_made(\(.*\));/DARKNET_AMP(darknet_amp_made(\1);)/
s/AMP_HOOK_free_value(\(.*\));/DARKNET_AMP(if(\1.amp) darknet_amp_free(\&\1);)/
s/AMP_HOOK_load(\([a-z]*\), \([a-z]*\));/DARKNET_AMP(FILE *amp_file = \1->amp ? darknet_amp_open_weights(\1, \2, "rb", 0, cutoff) : 0;)/
s/AMP_HOOK_save(\([a-z]*\), \([a-z]*\));/DARKNET_AMP(FILE *amp_file = 0; if(\1.amp \&\& !(amp_file = darknet_amp_open_weights(\&\1, \2, "wb", save_ema, cutoff))) return;)/
s/AMP_HOOK_file(\(.*\));/DARKNET_AMP(amp_file ? amp_file :) fopen(\1);/
s/AMP_HOOK_loaded(\([a-z]*\), \([a-z]*\));/DARKNET_AMP(if(amp_file){ darknet_amp_close_weights(\1, \2); return; })/
s/AMP_HOOK_saved(\([a-z]*\), \([a-z]*\));/DARKNET_AMP(if(amp_file){ darknet_amp_close_weights(\&\1, amp_file); return; })/
s/AMP_HOOK_gemm([a-z_]*, \(.*\));/DARKNET_AMP(if(darknet_amp_gemm(\1)) return;)/
s/AMP_HOOK_job(\(.*\));/DARKNET_AMP(darknet_amp_job(\&\1, AMP_PART_BEGINS);)/
s/AMP_HOOK_read_boxes(\(.*\), \(.*\));/DARKNET_AMP(box_label *amp_boxes; if(darknet_amp_read_boxes(\1, \&amp_boxes, \2)) return amp_boxes;)/
