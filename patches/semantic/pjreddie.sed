# Replaces the marks of hooks.cocci by the text of the plain patches. A mark that spatch has broken into lines
# is joined first.
:join
/AMP_HOOK_[a-z_]*([^;]*$/ { N; s/\n */ /; b join
}
s/AMP_HOOK_pass(\([a-z]*\)_network[a-z_]*, \([a-zA-Z_]*\));/DARKNET_AMP(if(\2->amp){ darknet_amp_\1(\2); return; })/
s/AMP_HOOK_made(\(.*\));/DARKNET_AMP(darknet_amp_made(\1);)/
s/AMP_HOOK_free(\(.*\));/DARKNET_AMP(if(\1->amp) darknet_amp_free(\1);)/
s/AMP_HOOK_load(\([a-z]*\), \([a-z]*\));/DARKNET_AMP(FILE *amp_file = \1->amp ? darknet_amp_open_weights(\1, \2, "rb", start, cutoff) : 0;)/
s/AMP_HOOK_save(\([a-z]*\), \([a-z]*\));/DARKNET_AMP(FILE *amp_file = 0; if(\1->amp \&\& !(amp_file = darknet_amp_open_weights(\1, \2, "wb", 0, cutoff))) return;)/
s/AMP_HOOK_file(\(.*\));/DARKNET_AMP(amp_file ? amp_file :) fopen(\1);/
s/AMP_HOOK_\(loaded\|saved\)(\([a-z]*\), \([a-z]*\));/DARKNET_AMP(if(\2->amp){ darknet_amp_close_weights(\2, \3); return; })/
s/AMP_HOOK_gemm([a-z_]*, \(.*\));/DARKNET_AMP(if(darknet_amp_gemm(\1)) return;)/
s/AMP_HOOK_job(\(.*\));/DARKNET_AMP(darknet_amp_job(\&\1, AMP_PART_BEGINS);)/
s/AMP_HOOK_read_boxes(\(.*\), \(.*\));/DARKNET_AMP(box_label *amp_boxes; if(darknet_amp_read_boxes(\1, \&amp_boxes, \2)) return amp_boxes;)/
