# Completion of `darknet-amp amp VERB` in bash. The program itself tells the verbs, a verb's options and what
# they may be.
_darknet_amp()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} help='' words=''
    if [ "$COMP_CWORD" = 1 ]; then
        words='amp detector classifier'
    elif [ "${COMP_WORDS[1]}" = amp ] && [ "$COMP_CWORD" = 2 ]; then
        words=$("$1" amp help 2> /dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')
    elif [ "${COMP_WORDS[1]}" = amp ]; then
        help=$("$1" amp "${COMP_WORDS[2]}" -h 2> /dev/null < /dev/null)
        case $before in
            -*) words=$(sed -n "s/^  $before \([a-z0-9|]*\) .*/\1/p" <<< "$help" | tr '|' ' ') ;;
        esac
        [ -n "$words" ] || [[ $word != -* ]] || words=$(sed -n 's/^  \(-[a-z]*\) .*/\1/p' <<< "$help")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _darknet_amp darknet-amp
